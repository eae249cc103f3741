"""Print and draw when a loss helps: its effect by batch size, false negatives and noisy positives.

    python examples/factors_map.py results FIGURE.svg [mine.py:Mine]

An effect is the difference from InfoNCE at the same level, each tuned there, in percent of what
InfoNCE gains with nothing changed. A claim promises a change: the effect at the hardest level less
the one with nothing changed. Three seeds tell little of one spread, so a domain's is pooled over
losses and levels. A change is taken as that of independent effects. A star: it is not zero, by
Holm's correction over all claims of the domain.
"""

import sys

import matplotlib.pyplot as plt
import pandas as pd
from scipy import stats

import contrastbench as cb

BARE, PLAIN, ALPHA = ("raw input", "untrained"), "plain", 0.05
FACTORS = {  # levels, the hardest last
    "batch size": [PLAIN, "batch 64", "batch 16"],
    "false negatives": ["without false negatives", PLAIN, "8 classes", "4 classes", "2 classes"],
    "noisy positives": [PLAIN, "noise 20 %", "noise 40 %"],
}


def effects(pairs):
    """Return what InfoNCE scores by level, its gain, and others' effects, all in points."""
    base = pairs.groupby("level").baseline_mean.first()
    bare = pairs[(pairs.level == PLAIN) & pairs.method.isin(BARE)]
    losses = pairs[(pairs.control == "") & pairs.difference.notna()]
    return base, -bare.difference.max(), losses.set_index(["level", "method"])


def errors(losses):
    """Return the pooled standard error of an effect, and its degrees of freedom."""
    drawn = losses[losses.difference_std > 0]  # others are the same runs as InfoNCE's
    freedom = drawn.t_n - 1
    pooled = (drawn.difference_std**2 * freedom).sum() / freedom.sum()
    return (pooled / drawn.t_n.min()) ** 0.5, freedom.sum()


def claims(effect):
    """Return each claim's effects by level, the hardest last, and the change that it promises."""
    for factor, levels in FACTORS.items():
        for loss in effect.unstack().columns:
            found = {level: effect[level, loss] for level in levels if (level, loss) in effect}
            if PLAIN in found and levels[-1] in found:
                yield factor, loss, found, found[levels[-1]] - found[PLAIN]


def holm(p):
    """Return p-values after Holm's correction."""
    order = p.sort_values()
    return (order * list(range(len(p), 0, -1))).cummax().clip(upper=1).reindex(p.index)


def show(domain, pairs, axes):
    """Print a domain's claims, and draw its effects against each factor."""
    base, gain, losses = effects(pairs)
    error, freedom = errors(losses)
    rows, unit = [*claims(100 * losses.difference / gain)], 100 * error / gain
    half = unit * stats.t.ppf(1 - ALPHA / 2, freedom)
    change, error_of_change = pd.Series([row[-1] for row in rows]), 2**0.5 * unit
    p = holm(pd.Series(2 * stats.t.sf(change.abs() / error_of_change, freedom)))
    found_by = stats.t.ppf([1 - ALPHA / 2 / len(rows), 0.8], freedom).sum() * error_of_change
    own = (f"{k} {100 * (base[k] - base[PLAIN]) / gain:+z.0f}" for k in base.index if k != PLAIN)
    wide = 2**0.5 * half
    print(f"\n{domain}: effects ± {half:.0f}, changes ± {wide:.0f} % of {gain:.1f} points.")
    print(f"A change of {found_by:.0f} % would be found with 80 % power.")
    print(f"InfoNCE itself: {', '.join(own)} %.\n")
    print("| factor | loss | effect by level | change |\n| --- | --- | --- | --- |")
    for (factor, loss, found, by), corrected in zip(rows, p, strict=True):
        shown = ", ".join(f"{level} {mean:+z.0f}" for level, mean in found.items())
        print(f"| {factor} | `{loss}` | {shown} | {by:+z.0f}{'*' * (corrected <= ALPHA)} |")
        axis = axes[list(FACTORS).index(factor)]
        aside = 0.05 * len(axis.containers)  # so that no interval hides another
        places = [place + aside for place in range(len(found))]
        axis.errorbar(places, [*found.values()], half, label=loss, capsize=2)
        axis.set_xticks(range(len(found)), found)
        axis.set_title(f"{domain}, {factor}", size=9)
    for axis in axes:
        if not axis.containers:  # captions have no classes, so no false negatives
            axis.set_axis_off()
            continue
        axis.axhline(0, color="grey", linewidth=0.5)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=6)
    axes[0].set_ylabel("effect, % of InfoNCE's gain", size=8)


def main(results, figure, *losses):
    """Print and draw every domain of which all has run."""
    plt.rcParams["svg.hashsalt"] = ""  # the same bytes each time
    pairs = cb.compare("factors", losses=losses, results=results)
    pairs["level"] = pairs.column.str.partition(", ")[2]
    pairs = pairs[pairs.difference.notna() | pairs.control.ne("")]
    whole = {d: one for d, one in pairs.groupby("domain") if {*one.level} >= {"noise 40 %"}}
    size, rows = (12, 3.2 * len(whole)), len(whole)
    _, axes = plt.subplots(rows, 3, figsize=size, sharey="row", squeeze=False)
    for row, (domain, own) in zip(axes, whole.items(), strict=True):
        show(domain, own, row)
    plt.tight_layout()
    plt.savefig(figure, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
