"""Recompute a standing comparison from its records by pandas and scipy, without contrastbench.

    python examples/recompute_standard.py results standard-4 10

The last word counts the suite's losses beside InfoNCE, also those that have yet to run. It prints
what `bench compare` shows: each method's effect over data sets in percent of what training gains,
half of its 95 % interval, p and the verdict. Holm's correction is over losses, not over controls.
"""

import json
import lzma
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean  # rounded once, so equal scores stay equal

import numpy as np
import pandas as pd
from scipy import stats

MARGIN, ALPHA, FINALISTS, TRIALS, SHOWN = 5.0, 0.05, 4, (1000, 1001, 1002), (0, 1, 2)


def read(results, keys):
    """Return the records of those keys by key and seed."""
    found = defaultdict(dict)
    for path in Path(results).glob("runs/*/*/packed-*.sqlite"):
        db = sqlite3.connect(path)
        text = {n: lzma.decompress(xz) for n, xz in db.execute("SELECT id, xz FROM blocks")}
        for block, start, size in db.execute("SELECT block, start, size FROM files"):
            one = json.loads(text[block][start : start + size])
            if one["key"] in keys:
                found[one["key"]][one["seed"]] = one
    for path in Path(results).glob("runs/*/*/*/*.json"):
        one = json.loads(path.read_text(encoding="utf-8"))
        if one["key"] in keys:
            found[one["key"]][one["seed"]] = one
    return found


def validation(run):
    """Return the score by which a run's setting is chosen; one that diverged ranks last."""
    return run["details"]["validation"] if run["status"] == "ok" else -np.inf


def chosen(runs, shift):
    """Return the runs of the best of four finalists of the points, of equal ones the earlier."""
    if len(runs) == 1:
        return runs[0]
    first = pd.Series([validation(run[TRIALS[0] + shift]) for run in runs])
    best = first.sort_values(ascending=False, kind="stable").index[:FINALISTS]
    means = [fmean(validation(runs[k][seed + shift]) for seed in TRIALS) for k in best]
    return runs[best[int(np.argmax(means))]]


def scores(results, cells):
    """Return the mean score of each method on each data set with its domain."""
    runs, found = read(results, {*cells.key}), {}
    for place, some in cells.groupby(["method", "domain", "column"], sort=False):
        shift = some["shift"].iloc[0]
        best = chosen([runs[key] for key in some.sort_values("point").key], shift)
        found[place] = fmean(best[s + shift]["metrics"][best[s + shift]["main"]] for s in SHOWN)
    return pd.Series(found).unstack(0)


def over_sets(effects):
    """Return the mean over domains with its standard error and degrees of freedom."""
    by_domain = effects.groupby(level=0)
    freedom, variance = by_domain.count() - 1, by_domain.var().fillna(0)
    pooled = (freedom * variance).sum() / freedom.sum()
    error = np.sqrt(pooled * (1 / by_domain.count()).sum()) / len(freedom)
    own = (freedom * variance).sum() ** 2 / (freedom * variance**2).sum()
    return pd.Series({"effect": by_domain.mean().mean(), "error": error, "freedom": own})


def holm(p, tests):
    """Return p-values after Holm's correction for so many tests, also those to come."""
    order = p.sort_values()
    return (order * np.arange(tests, tests - len(p), -1)).cummax().clip(upper=1)


def compare(results, suite, losses):
    """Return the effect of each method over data sets, and its verdict."""
    cells = pd.read_csv(Path(results) / f"{suite}-cells.csv").fillna({"control": ""})
    score = scores(results, cells)
    gain = score.infonce - score[["raw input", "untrained"]].max(axis=1)
    effects = score.drop(columns="infonce").sub(score.infonce, axis=0).div(gain / 100, axis=0)
    controls = effects.columns.isin(cells.method[cells.control != ""])
    effects = effects.loc[:, controls | effects.notna().all()]  # a loss is shown once it is whole
    found = effects.apply(lambda one: over_sets(one.dropna())).T
    t, size = stats.t(found.freedom), found.effect.abs()
    found["half"] = t.ppf(1 - ALPHA / 2) * found.error
    found["p"], found["p_equal"] = 2 * t.sf(size / found.error), t.sf((MARGIN - size) / found.error)
    shown = found.index.difference(cells.method[cells.control != ""])
    for p in ("p", "p_equal"):
        found.loc[shown, p] = holm(found.loc[shown, p], losses)
    words = np.where(found.p_equal <= ALPHA, "equal", "undecided")
    sign = np.where(found.effect > 0, "better", "worse")
    found["verdict"] = np.where(found.p <= ALPHA, sign, words)
    return found


if __name__ == "__main__":
    print(compare(*sys.argv[1:3], int(sys.argv[3])).round(3).to_string())
