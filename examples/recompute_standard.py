"""Recompute the standing comparison from its records by pandas and scipy, without contrastbench.

    python examples/recompute_standard.py results standard-3

It prints what `bench compare` shows: effects in percent of what training gains, half their 95 %
intervals, and whether a method is different there, or equal in all domains.
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

MARGIN, ALPHA, SHOWN = 10.0, 0.05, 100  # seeds from 100 on choose settings or data sets


def read(results, keys):
    """Return the records of those keys by key and seed."""
    found = defaultdict(dict)
    for path in Path(results).glob("runs/*/*/packed-*.sqlite"):
        db = sqlite3.connect(path)
        text = {n: lzma.decompress(xz) for n, xz in db.execute("SELECT id, xz FROM blocks")}
        # older packs have the latter
        ((table,),) = db.execute("SELECT name FROM sqlite_master WHERE name IN ('files','records')")
        for block, start, size in db.execute(f"SELECT block, start, size FROM {table}"):
            one = json.loads(text[block][start : start + size])
            if one["key"] in keys and one["status"] == "ok":
                found[one["key"]][one["seed"]] = one
    return found


def chosen(score, value, best):
    """Return the mean value of the settings with the best scores, of equal ones the earlier."""
    return value[score.sort_values(ascending=False, kind="stable").index[:best]].mean()


def number(runs, points, seed, best):
    """Return the number of a seed: of one setting, or of those at the best of several points."""
    own, rest = [run[seed] for run in runs], [[run[s] for s in {*run} - {seed}] for run in runs]
    value = pd.DataFrame([r["details"].get("folds") or [r["metrics"][r["main"]]] for r in own])
    if not best:
        return fmean(value.loc[0])
    ranking = pd.Series([fmean(map(validation, some)) for some in rest])
    kept = sorted(ranking.groupby(points).idxmax())  # at each point the other seeds choose one
    inner = [r["details"].get("inner") or [by] for r, by in zip(own, ranking, strict=True)]
    score = pd.DataFrame(inner).loc[kept]  # each fold chooses by its own training part
    return fmean(chosen(score[i], value[i], best) for i in value)


def validation(run):
    """Return the score by which a run's setting is ranked for other seeds."""
    return fmean(run["details"].get("inner") or [run["details"]["validation"]])


def scores(results, cells):
    """Return a column of seeds' numbers for each method and data set with its domain."""
    runs, found = read(results, {*cells.key}), {}
    places = cells.groupby(["method", "domain", "column", "best", "shift"], sort=False)
    for (*place, best, shift), some in places:
        shown = [{s - shift: r for s, r in runs[k].items() if s - shift < SHOWN} for k in some.key]
        found[tuple(place)] = {s: number(shown, [*some.point], s, best) for s in sorted(shown[0])}
    return pd.DataFrame(found)


def holm(p):
    """Return p-values after Holm's correction."""
    order = p.sort_values()
    return (order * np.arange(len(p), 0, -1)).cummax().clip(upper=1)


def compare(results, suite):
    """Return the effect of each method in each domain, half its interval, and the verdicts."""
    cells = pd.read_csv(Path(results) / f"{suite}-cells.csv").fillna({"control": ""})
    score = scores(results, cells)
    base = score["infonce"]
    bare = [score[method].where(base.notna()).mean() for method in ("raw input", "untrained")]
    gain = base.mean() - bare[0].combine(bare[1], max)
    sets = pd.concat({m: 100 * (score[m] - base) / gain for m in cells.method.unique()}, axis=1)
    domains = sets.T.groupby(level=[0, 1], sort=False).mean().T.dropna(axis=1, how="all")
    found, error = pd.DataFrame({"effect": domains.mean()}), domains.sem()
    t = stats.t(domains.count() - 1)
    found["half"] = t.ppf(1 - ALPHA / 2) * error
    none = pd.Series(2 * t.sf(found.effect.abs() / (error + 1e-12)), found.index)
    beyond = pd.Series(t.sf((MARGIN - found.effect.abs()) / (error + 1e-12)), found.index)
    sure = sets.mean().abs() > stats.t.ppf(1 - ALPHA / 2, sets.count() - 1) * sets.sem()
    far = sets.mean()[sure & (sets.mean().abs() > MARGIN)].droplevel(2)  # each on one data set
    beyond[far.index] = 1
    none[far.index[far * found.effect[far.index] < 0]] = 1  # opposite effects do not cancel
    runs = found.effect[cells[cells.control == ""].method.unique()].unstack().round(9)
    tested = runs[runs.abs().max(axis=1) > 0].drop_duplicates().index  # each run once
    found["different"] = holm(none[tested]) <= ALPHA
    equal = holm(beyond[tested].groupby(level=0).max()) <= ALPHA
    return found.join(equal.rename("equal")).fillna(False)


if __name__ == "__main__":
    print(compare(*sys.argv[1:]).round(2).to_string())
