"""Draw where losses help: their effects against what is known of a data set before training.

    python examples/where_it_helps.py standard-4 results FIGURE.svg hcl attentionnce

An effect is the difference from InfoNCE in percent of what training gains there, as `bench compare`
has it. False negatives are the other samples of a batch that are of the anchor's class. Their share
is the sum of squares of the classes' shares. Each slope is that of least squares over the sets that
have the number, with its 95 % interval and p. None is corrected: a slope found here is a question
for sets that have not run.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

import contrastbench as cb
from contrastbench.benchmarks.records.reading import all_records

BARE = ("raw input", "untrained")
COLOURS = {"image": "C0", "tabular": "C1", "graph": "C2", "sentence": "C3"}


def sizes(classes):
    """Return the classes' sizes; of many classes a report has the ends alone."""
    if "number" in classes:
        return np.linspace(classes["smallest"], classes["largest"], classes["number"])
    return np.array([*classes.values()], dtype=float)


def known(results, hashes):
    """Return what records say of data: by the first digits of the hash."""
    found = {}
    for _, record in all_records(Path(results)):
        data = record["data_hash"][:12]
        if data in hashes and data not in found and record["status"] == "ok":
            shares = sizes(record["details"].get("report", {}).get("classes", {}))
            shares = shares / shares.sum()
            found[data] = {
                "false negatives, %": 100 * (shares**2).sum() or np.nan,
                "classes": len(shares) or np.nan,
                "rows": sum(record["details"].get("samples", {}).values()) or np.nan,
            }
    return pd.DataFrame(found).T


def effects(pairs):
    """Return effects in percent of the gain by method and column, and each column's gain."""
    bare = pairs[pairs.method.isin(BARE)].groupby("column").difference.max()
    gains = -bare[bare < -1]
    kept = pairs[pairs.column.isin(gains.index)]
    share = 100 * kept.difference / kept.column.map(gains)
    return kept.assign(effect=share).set_index(["method", "column"]).effect, gains


def slope(x, y):
    """Return the slope over a tenfold, half of its 95 % interval, and p."""
    line = stats.linregress(np.log10(x), y)
    return line.slope, stats.t.ppf(0.975, len(x) - 2) * line.stderr, line.pvalue


def show(method, effect, about, domains, axes):
    """Print and draw one loss against each number."""
    for name, ax in zip(about.columns, axes, strict=True):
        both = pd.concat([about[name], effect], axis=1, keys=["x", "y"]).dropna()
        ax.scatter(both.x, both.y, c=[COLOURS[domains[column]] for column in both.index], s=16)
        ax.axhline(0, color="0.7", lw=0.8)
        ax.set(xscale="log", xlabel=name, ylabel=f"{method}: % of the gain")
        if len(both) > 2 and both.x.nunique() > 1:
            per, half, p = slope(both.x, both.y)
            found = f"{per:+6.1f} ± {half:5.1f} a tenfold, p {p:.3f}"
            print(f"{method:14} {name:20} {found}, {len(both)} sets")


def main(name, results, out, *methods):
    """Draw a row of panels for each loss."""
    pairs, table = cb.compare(name, results=results), cb.table(name, results=results)
    data = table[table.method == pairs.against.iloc[0]].set_index("column").data
    effect, gains = effects(pairs)
    about = known(results, {*data}).reindex(data).set_axis(data.index).assign(gain=gains)
    domains = pairs.groupby("column").domain.first()
    methods = methods or pairs.method[pairs.control == ""].unique()
    size = {"figsize": (11, 2.4 * len(methods)), "layout": "constrained", "squeeze": False}
    drawing, rows = plt.subplots(len(methods), len(about.columns), **size)
    for method, axes in zip(methods, rows, strict=True):
        show(method, effect[method], about, domains, axes)
    drawing.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "contrastbench"
    main(*sys.argv[1:])
