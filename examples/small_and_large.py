"""Ask whether a small training orders losses as a large one does: two tables of equal rows.

    cd results
    python ../examples/small_and_large.py cifar10-small.csv cifar10-large.csv FIGURE.svg

It prints and draws effects, in percent of what InfoNCE gains over the untrained encoder, and the
rank correlation of the losses' effects. Some rows have one seed: all rows of a table are taken to
have one spread over seeds, and intervals follow from Student's distribution of means. Other losses
would give another correlation: its second interval is that of Fisher's z, with Fieller's variance.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

BARE, CONTROLS, DRAWS = "untrained", ["untrained", "temperature 5", "cross entropy"], 5000


def effects(file, rng):
    """Return each row's effect, as the means are and as they may have been."""
    rows = pd.read_csv(file).set_index("method").query("ours_seeds > 0")
    free = rows.ours_seeds - 1  # degrees of freedom; those of all rows tell the one deviation
    deviation = ((rows.ours_std.fillna(0) ** 2 * free).sum() / free.sum()) ** 0.5
    spread = deviation / rows.ours_seeds**0.5
    drawn = stats.t.rvs(free.sum(), size=(DRAWS, len(rows)), random_state=rng)
    mean = pd.DataFrame(rows.ours_mean.values + np.vstack([0 * drawn[:1], drawn]) * spread.values)
    mean.columns = rows.index
    base, bare = mean.iloc[:, 0], mean[BARE]
    return mean.sub(base, axis=0).mul(100 / (base - bare), axis=0).iloc[:, 1:]


def main(small_file, large_file, figure):
    """Print effects and their correlation, and draw one against the other."""
    rng = np.random.default_rng(0)
    found = {"small": effects(small_file, rng), "large": effects(large_file, rng)}
    shown = pd.DataFrame({name: one.iloc[0] for name, one in found.items()})
    low, high = (
        pd.DataFrame({n: one.quantile(q) for n, one in found.items()}) for q in (0.025, 0.975)
    )
    table = pd.concat({"effect": shown, "from": low, "to": high}, axis=1)
    print(table.swaplevel(axis=1)[["small", "large"]].round(0).to_string())
    small, large = (one.drop(columns=CONTROLS).rank(axis=1) for one in found.values())
    every = small.corrwith(large, axis=1)
    low_rank, high_rank = every.iloc[1:].quantile([0.025, 0.975])
    losses = shown.index.drop(CONTROLS)
    print(f"rank correlation {every[0]:.2f}")
    print(f"95 % interval {low_rank:.2f} to {high_rank:.2f} by seeds")
    half = 1.96 * (1.06 / (len(losses) - 3)) ** 0.5
    ends = np.tanh(np.arctanh(every[0]) + np.array([-half, half]))
    print(f"95 % interval {ends[0]:.2f} to {ends[1]:.2f} by losses")

    x, y = shown.small[losses], shown.large[losses]
    widths = [[x - low.small[losses], high.small[losses] - x]]
    widths += [[y - low.large[losses], high.large[losses] - y]]
    plt.figure(figsize=(8, 7))
    plt.errorbar(x, y, xerr=widths[0], yerr=widths[1], fmt="o", elinewidth=0.8)
    for number, name in enumerate(y.sort_values().index):
        side = 2 * (number % 2) - 1  # left and right in turn, so that near names stay apart
        where = {"ha": "left" if side > 0 else "right", "textcoords": "offset points"}
        plt.annotate(name.split(" ")[0], (x[name], y[name]), (5 * side, 4), size=8, **where)
    plt.axhline(0, color="grey", linewidth=0.5)
    plt.axvline(0, color="grey", linewidth=0.5)
    plt.xlabel("small: effect in % of InfoNCE's gain")
    plt.ylabel("large")
    plt.tight_layout()
    plt.savefig(figure, metadata={"Date": None})  # the same bytes each time


if __name__ == "__main__":
    main(*sys.argv[1:])
