"""Plot a comparison over data sets: the effect of each row with its interval, controls below."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contrastbench.benchmarks.comparison.effects import Effect, OverSets
from contrastbench.benchmarks.comparison.verdicts import Verdicts
from contrastbench.benchmarks.report.plots import (
    COLORS,
    MARKERS,
    RC,
    UNDECIDED_COLOUR,
    VERDICT_COLOURS,
    Drawing,
)
from contrastbench.benchmarks.report.words import said, signed

TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # from the margin on, and their negatives
LINE_INCHES, WIDTH_INCHES = 0.2, 6.4
CONTROLS = "controls"


def effects_plot(found: Verdicts) -> Drawing | None:
    """Return effects over data sets with their intervals; None where no verdict is possible.

    Losses that are another one by algebra are left out. The axis is linear within twice the
    margin and logarithmic beyond it, so that controls fit beside losses.
    """
    over = found.over
    losses = [one for one in over.contestants if not one.is_copy]
    if not (losses and over.decides):
        return None
    controls = [one for one in over.effects if one.control]
    with matplotlib.rc_context(RC):
        return Drawing(forest(found.base, over, losses, controls), *said(found, "effects"))


def forest(
    base: str, over: OverSets, losses: Sequence[Effect], controls: Sequence[Effect]
) -> Figure:
    """Draw a line for each loss, best first, and for each control below them."""
    lines: list[Effect | None] = [*losses, *([None, *controls] if controls else [])]
    height = LINE_INCHES * len(lines) + 0.9
    figure = Figure(figsize=(WIDTH_INCHES, height))
    axes = figure.add_axes((0.24, 0.5 / height, 0.58, 1 - 0.9 / height))
    axes.set_xscale("asinh", linear_width=2 * over.margin)
    axes.axvspan(-over.margin, over.margin, color=COLORS[2], alpha=0.12, linewidth=0)
    axes.axvline(0, color="black", linewidth=0.8)
    for y, line in enumerate(lines):
        if line is not None:
            draw_effect(axes, line, y, over)
    name_lines(axes, lines)
    name_domains(axes, over)
    set_ticks(axes, [*losses, *controls], over.margin)
    axes.set_xlabel(f"difference from {base}, {over.unit}; shaded: equal in practice")
    return figure


def draw_effect(axes: Axes, one: Effect, y: int, over: OverSets) -> None:
    """Draw an effect with its interval and verdict; small marks are the means of domains.

    A mark is filled where the domain alone shows a difference.
    """
    color = VERDICT_COLOURS.get(one.verdict, UNDECIDED_COLOUR)
    if all(map(isfinite, one.interval)):
        axes.plot(one.interval, [y, y], color=color, linewidth=2.2, solid_capstyle="butt")
    axes.plot([one.estimate], [y], color=color, marker="|", markersize=9, markeredgewidth=2.2)
    for name, mean in one.by_domain.items():
        filled = color if name in one.alone else "none"
        about: dict[str, Any] = {"marker": mark(over.domains.index(name)), "markersize": 4}
        axes.plot([mean], [y], color=color, markerfacecolor=filled, markeredgewidth=0.7, **about)
    axes.annotate(
        one.verdict + ", small" * over.is_small(one),
        (1, y),
        (6, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        color=color,
        annotation_clip=False,
    )


def mark(domain: int) -> str:
    """Return the mark of a domain by its number."""
    return MARKERS[domain % len(MARKERS)]


def name_lines(axes: Axes, lines: Sequence[Effect | None]) -> None:
    """Write the rows at the left, and a heading over the controls."""
    places = [y for y, line in enumerate(lines) if line is not None]
    names = [line.row for line in lines if line is not None]
    axes.set_yticks(places, names, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    if None in lines:
        place: dict[str, Any] = {
            "transform": axes.get_yaxis_transform(),
            "va": "center",
            "ha": "right",
        }
        axes.text(-0.02, lines.index(None), CONTROLS, weight="bold", **place)


def name_domains(axes: Axes, over: OverSets) -> None:
    """Say above the plot which mark is the mean of which domain."""
    for i, name in enumerate(over.domains):
        about: dict[str, Any] = {"color": "black", "markerfacecolor": "none", "linestyle": "none"}
        axes.plot([], [], marker=mark(i), markersize=4, label=name, **about)
    if any(one.alone for one in over.effects):
        axes.plot([], [], " ", label="filled: decided alone")
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
    axes.legend(ncols=len(over.domains) + 1, handletextpad=0.1, **place)


def set_ticks(axes: Axes, shown: Sequence[Effect], margin: float) -> None:
    """Let the axis reach over all effects and their intervals, and the margin."""
    ends = [end for one in shown for end in one.interval if isfinite(end)]
    ends += [mean for one in shown for mean in [one.estimate, *one.by_domain.values()]]
    least, most = 1.15 * min([*ends, -margin]), 1.15 * max([*ends, margin])
    axes.set_xlim(least, most)
    steps = [tick for tick in TICKS if tick >= margin]
    ticks = [x for x in [*(-step for step in steps), 0, *steps] if least <= x <= most]
    axes.set_xticks(ticks, [signed(tick, 0) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", labelsize=7.5)  # +10 and +20 stand close where controls are far
