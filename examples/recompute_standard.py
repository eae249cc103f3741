"""Recompute the standing comparison from its records by pandas and scipy, without contrastbench.

    python examples/recompute_standard.py results standard-3

It prints what `bench compare` shows: effects in percent of what training gains, by domain.
"""

import json
import lzma
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean  # rounded once, so equal scores stay equal

import pandas as pd
from scipy import stats

MARGIN, ALPHA = 10.0, 0.05
SHOWN = 100  # seeds from here on choose settings or data sets


def records(results):
    """Yield all records of the packs in a folder."""
    for path in Path(results).glob("runs/*/*/packed-*.sqlite"):
        db = sqlite3.connect(path)
        text = {n: lzma.decompress(xz) for n, xz in db.execute("SELECT id, xz FROM blocks")}
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
        table = "files" if "files" in tables else "records"  # older packs have the latter
        for block, start, size in db.execute(f"SELECT block, start, size FROM {table}"):
            yield json.loads(text[block][start : start + size])


def top(scores, best):
    """Return the settings with the best scores, of equal ones the earlier."""
    return scores.sort_values(ascending=False, kind="stable").index[:best]


def numbers(runs, best):
    """Return the number of each seed: of one setting, or of the best ones of several."""
    seeds, found = sorted(set.intersection(*map(set, runs))), {}
    value = pd.DataFrame({s: [r[s]["metrics"][r[s]["main"]] for r in runs] for s in seeds})
    if not best:
        return value.loc[0]
    details = {s: [run[s]["details"] for run in runs] for s in seeds}
    for s in seeds:
        if "folds" in details[s][0]:  # each fold chooses by its own training part
            test, inner = (pd.DataFrame([d[k] for d in details[s]]) for k in ("folds", "inner"))
            folds = [test.loc[top(inner[i], best), i].mean() for i in test]
            found[s] = sum(folds) / len(folds)
        else:  # each seed is chosen for by the others
            score = pd.DataFrame(
                {o: [d["validation"] for d in details[o]] for o in seeds if o != s}
            )
            found[s] = value.loc[top(score.apply(fmean, axis=1), best), s].mean()
    return pd.Series(found)


def holm(p):
    """Return p-values after Holm's correction."""
    order = p.sort_values()
    return (order * list(range(len(p), 0, -1))).cummax().clip(upper=1)


def main(results, suite):
    """Print each method's mean effect, its effect in each domain ± half the interval, verdicts."""
    cells = pd.read_csv(Path(results) / f"{suite}-cells.csv").fillna({"control": ""})
    wanted, runs, domain, score = set(cells.key), defaultdict(dict), {}, defaultdict(dict)
    for one in records(results):
        if one["key"] in wanted and one["status"] == "ok":
            runs[one["key"]][one["seed"]] = one
    places = cells.groupby(["method", "column", "best", "shift"], sort=False)
    for (method, column, best, shift), some in places:
        shown = [{s - shift: r for s, r in runs[k].items() if s - shift < SHOWN} for k in some.key]
        score[method][column] = numbers(shown, best)
        domain[column] = next(iter(shown[0].values()))["domain"]
    base, rows, far = score["infonce"], {}, defaultdict(list)
    bare = {
        c: max(score[m][c][base[c].index].mean() for m in ("raw input", "untrained")) for c in base
    }
    for method, own in score.items():
        effects = {c: 100 * (own[c] - base[c]) / (base[c].mean() - bare[c]) for c in own}
        rows[method] = pd.DataFrame(effects).T.groupby(domain, sort=False).mean().T
        for column, one in effects.items():  # shown to be beyond the margin on one set
            shown = stats.ttest_1samp(one, 0).pvalue <= ALPHA and abs(one.mean()) > MARGIN
            far[domain[column], method] += [one.mean()] * bool(shown)
    mean, error = (
        pd.DataFrame({m: f(r) for m, r in rows.items()})
        for f in (pd.DataFrame.mean, pd.DataFrame.sem)
    )
    freedom = rows["infonce"].count() - 1  # by domain
    losses = cells[cells.control == ""].method.unique()
    alike = mean[losses].round(9).T.drop_duplicates()
    tested = alike[alike.abs().max(axis=1) > 0].index  # each run once, and not the baseline's
    effect, noise = mean[tested].stack(), error[tested].stack() + 1e-12
    t = stats.t(freedom[effect.index.get_level_values(0)])
    none, beyond = (
        pd.Series(p, effect.index)
        for p in (2 * t.sf(effect.abs() / noise), t.sf((MARGIN - effect.abs()) / noise))
    )
    for place in effect.index:  # opposite effects do not cancel
        none[place] = 1 if any(one * effect[place] < 0 for one in far[place]) else none[place]
        beyond[place] = 1 if far[place] else beyond[place]
    different = holm(none)
    equal = holm(beyond.groupby(level=1).max())
    for m in mean.mean().sort_values(ascending=False).index:
        half = stats.t.ppf(1 - ALPHA / 2, freedom[error.index]) * error[m]
        shown = [
            f"{d} {mean[m][d]:+.2f} ± {half[d]:.2f}"
            + ("*" if different.get((d, m), 1) <= ALPHA else "")
            for d in mean[m].dropna().index
        ]
        word = "equal" if equal.get(m, 1) <= ALPHA else ""
        print(f"{m:20} {mean[m].mean():+8.2f} {word:6}", ", ".join(shown))


if __name__ == "__main__":
    main(*sys.argv[1:])
