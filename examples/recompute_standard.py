"""Recompute a standing comparison from the frame of its records, with arithmetic of its own.

    bench merge --shipped && bench table --all    # records, and the keys that each method tried
    python examples/recompute_standard.py results standard-4 10

The last word counts the losses that the suite lists, also those that have yet to run.
"""

import sys
from statistics import fmean  # rounded once, so equal scores stay equal

import numpy as np
import pandas as pd
from scipy import stats

import contrastbench as cb

MARGIN, ALPHA, FEWEST, FINALISTS, TRIALS, SHOWN = 5.0, 0.05, 3, 4, [1000, 1001, 1002], [0, 1, 2]
SET, PLACE = ["domain", "column"], ["method", "domain", "column"]


def chosen_scores(results, cells):
    """Return the scores of each method's best point by set and seed, -inf if it diverged."""
    runs = cells.merge(cb.records(results, but=()), on="key", suffixes=("", "_of_record"))
    runs["seed"] -= runs["shift"]
    runs.loc[runs.status != "ok", ["validation", "score"]] = -np.inf
    runs = runs.sort_values("score").drop_duplicates([*PLACE, "point", "seed"], keep="last")
    wide = runs.pivot(index=[*PLACE, "point"], columns="seed", values=["validation", "score"])
    trials = wide.validation[TRIALS].fillna(0)  # of a control with one point there are none
    ranked = trials.sort_values(TRIALS[0], ascending=False, kind="stable")
    finalists = ranked.groupby(PLACE).head(FINALISTS)
    best = finalists.apply(fmean, axis=1).groupby(PLACE).idxmax()  # of equal ones the first
    return wide.score.loc[best, SHOWN].droplevel("point").stack().unstack("method")


def over_sets(effects):
    """Return the mean over domains, its standard error and its degrees of freedom."""
    sets = effects.dropna().groupby("domain")
    freedom, variance = sets.count() - 1, sets.var().fillna(0)
    pooled = (freedom * variance).sum() / freedom.sum()
    error = np.sqrt(pooled * (1 / sets.count()).sum()) / len(freedom)
    own = (freedom * variance).sum() ** 2 / (freedom * variance**2).sum()  # Satterthwaite 1946
    return {"effect": sets.mean().mean(), "error": error, "freedom": own}


def holm(p, tests):
    """Return p-values after Holm's correction for so many tests."""
    return (p.sort_values() * np.arange(tests, tests - len(p), -1)).cummax().clip(upper=1)


def compare(results, suite, losses):
    """Return the effect of each method over sets with its verdict; controls are not corrected."""
    cells = pd.read_csv(f"{results}/{suite}-cells.csv").fillna({"control": ""})
    scores = chosen_scores(results, cells)
    lead = scores.drop(columns="infonce").sub(scores.infonce, axis=0)
    gain = -lead[["raw input", "untrained"]].groupby(SET).mean().max(axis=1)
    effects = 100 * lead.div(gain.reindex(lead.index.droplevel("seed")).to_numpy(), axis=0)
    effects = effects.replace(-np.inf, -100).groupby(SET).mean()
    listed = lead.columns.difference(cells.method[cells.control != ""])
    effects = effects.drop(columns=listed[lead[listed].isna().any()])  # a loss that has run in part
    found = pd.DataFrame({method: over_sets(effects[method]) for method in effects}).T
    t, size = stats.t(found.freedom), found.effect.abs()
    found["half"] = t.ppf(1 - ALPHA / 2) * found.error
    found["p"], found["p_equal"] = 2 * t.sf(size / found.error), t.sf((MARGIN - size) / found.error)
    untested = found.freedom < FEWEST  # sets too few to tell how far effects differ
    found.loc[untested, ["p", "p_equal"]] = np.nan
    family = found.index.intersection(listed)
    for p in ("p", "p_equal"):
        found.loc[family, p] = holm(found.loc[family, p].dropna(), losses - untested[family].sum())
    sign = np.where(found.effect > 0, "better", "worse")
    words = np.where(found.p_equal <= ALPHA, "equal", "undecided")
    found["verdict"] = np.where(untested, "untested", np.where(found.p <= ALPHA, sign, words))
    return found


if __name__ == "__main__":
    print(compare(*sys.argv[1:3], int(sys.argv[3])).round(3).to_string())
