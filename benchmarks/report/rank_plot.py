"""Demšar's diagram of average ranks."""

from collections.abc import Sequence
from math import ceil

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contrastbench.benchmarks.comparison.statistics import Ranking
from contrastbench.benchmarks.report.plots import RC, Drawing

MAX_NUMBERS = 12  # ranks that have room beside each other


def critical_difference(names: Sequence[str], ranking: Ranking) -> Drawing:
    """Demšar's diagram: average ranks on an axis, 1 left.

    A bar joins methods that the Nemenyi test keeps together.
    """
    order = sorted(range(len(names)), key=lambda i: ranking.ranks[i])
    half, k = (len(names) + 1) // 2, len(names)
    height = 0.7 + 0.22 * half + 0.12 * len(ranking.groups)
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(5.0, height))
        axes = figure.add_axes((0.3, 0, 0.4, 1))
        axes.set_xlim(1, k)
        axes.set_ylim(height, 0)
        axes.axis("off")
        draw_scale(axes, k, ranking.critical_difference)
        below = 0.75 + 0.12 * len(ranking.groups)
        for place, i in enumerate(order):
            left = place < half
            y = below + 0.22 * (place if left else k - 1 - place)
            draw_method(
                axes,
                f"{names[i]}  {ranking.ranks[i]:.2f}",
                ranking.ranks[i],
                y,
                1 if left else k,
                left,
            )
        for level, group in enumerate(ranking.groups):
            ends = [ranking.ranks[group[0]], ranking.ranks[group[-1]]]
            axes.plot(
                ends,
                [0.72 + 0.12 * level] * 2,
                color="black",
                linewidth=3,
                solid_capstyle="round",
                clip_on=False,
            )
        ranks = ", ".join(f"{names[i]} {ranking.ranks[i]:.2f}" for i in order)
        joined = (
            "; ".join(" and ".join(names[i] for i in group) for group in ranking.groups) or "none"
        )
        difference = f"Critical difference {ranking.critical_difference:.2f}"
        words = f"Average ranks, best first: {ranks}. {difference}. Joined: {joined}."
        return Drawing(figure, words)


def draw_scale(axes: Axes, k: int, difference: float) -> None:
    """The axis of ranks, and the critical difference above it, cut at the axis's end."""
    axes.plot([1, k], [0.55, 0.55], color="black", linewidth=0.8, clip_on=False)
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0.5, 0.55], color="black", linewidth=0.8, clip_on=False)
    for rank in range(1, k + 1, ceil(k / MAX_NUMBERS)):
        axes.text(rank, 0.46, str(rank), ha="center", va="bottom")
    shown = min(difference, k - 1)
    axes.plot([1, 1 + shown], [0.2, 0.2], color="black", linewidth=1.6, clip_on=False)
    axes.text(
        1 + shown / 2, 0.15, f"critical difference {difference:.2f}", ha="center", va="bottom"
    )


def draw_method(axes: Axes, label: str, rank: float, y: float, side: float, left: bool) -> None:
    """A line from the axis down and out to the method's name."""
    axes.plot([rank, rank, side], [0.55, y, y], color="black", linewidth=0.8, clip_on=False)
    axes.annotate(
        label,
        (side, y),
        (-6 if left else 6, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        annotation_clip=False,
        parse_math=False,
    )
