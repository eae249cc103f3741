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

MARGIN, ALPHA, FINALISTS, TRIALS, SHOWN = 5.0, 0.05, 4, [1000, 1001, 1002], [0, 1, 2]
SET, PLACE = ["domain", "column"], ["method", "domain", "column"]


def chosen_scores(runs):
    """Return the scores of each method's best point by set and seed, -inf if it diverged."""
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
    sets = effects.groupby("domain")
    count, variance = sets.count().replace(0, np.nan), sets.var()
    total = ((count - 1) * variance).sum()
    error = np.sqrt(total / (count - 1).sum() * (1 / count).sum()) / count.count()
    freedom = total**2 / ((count - 1) * variance**2).sum()  # Satterthwaite 1946
    return pd.DataFrame({"effect": sets.mean().mean(), "error": error, "freedom": freedom})


def holm(p, tests):
    """Return p-values after Holm's correction for so many tests."""
    return (p.sort_values() * np.arange(tests, tests - len(p), -1)).cummax().clip(upper=1)


def compare(results, suite, losses):
    """Return the effect of each method over sets with its verdict; controls are not corrected."""
    cells = pd.read_csv(f"{results}/{suite}-cells.csv")
    runs = cells.merge(cb.records(results, but=()), on="key", suffixes=("", "_of_record"))
    scores = chosen_scores(runs)
    lead = scores.drop(columns="infonce").sub(scores.infonce, axis=0)
    gain = -lead[["raw input", "untrained"]].groupby(SET).transform("mean").max(axis=1)
    effects = 100 * lead.div(gain, axis=0).replace(-np.inf, -1).groupby(SET).mean()
    listed = lead.columns.difference(cells.method[cells.control.notna()])
    found = over_sets(effects.drop(columns=listed[lead[listed].isna().any()]))  # none run in part
    t, size = stats.t(found.freedom), found.effect.abs()
    found["half"] = t.ppf(1 - ALPHA / 2) * found.error
    found["p"], found["p_equal"] = 2 * t.sf(size / found.error), t.sf((MARGIN - size) / found.error)
    family, ps = found.index.intersection(listed), ["p", "p_equal"]
    found.loc[family, ps] = found.loc[family, ps].apply(holm, tests=losses)
    sign = np.where(found.effect > 0, "better", "worse")
    shown = [found.p <= ALPHA, found.p_equal <= ALPHA]
    found["verdict"] = np.select(shown, [sign, "equal"], "undecided")
    return found


if __name__ == "__main__":
    print(compare(*sys.argv[1:3], int(sys.argv[3])).round(3).to_string())
