"""Plot a comparison over data sets: the effect of each row with its interval, controls below."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contrastbench.benchmarks.comparison.effects import Effect, OverSets, Part
from contrastbench.benchmarks.comparison.verdicts import Verdicts
from contrastbench.benchmarks.report.plots import (
    COLORS,
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

    Losses that are the baseline are left out. The axes are linear within twice the margin and
    logarithmic beyond it, so that controls fit beside losses.
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
    """Draw a line for each loss, best first, and for each control below them.

    Verdicts by domain have a panel for each, others one.
    """
    lines: list[Effect | None] = [*losses, *([None, *controls] if controls else [])]
    height, domains = LINE_INCHES * len(lines) + 1.2, over.domains if over.on_these else [""]
    figure, share = Figure(figsize=(WIDTH_INCHES, height)), 0.62 / len(domains)
    for i, name in enumerate(domains):
        place = (0.22 + i * share, 0.8 / height, share - 0.02, 1 - 1.2 / height)
        axes = figure.add_axes(place)
        draw_panel(axes, name, lines, over)
        name_lines(axes, lines if i == 0 else [])
        axes.set_ylim(len(lines) - 0.4, -0.6)
    for y, line in enumerate(lines):
        if line is not None:
            say_verdict(axes, line, y, over)
    text = f"difference from {base}, {over.unit}; shaded: equal in practice"
    figure.supxlabel(text, fontsize="medium", y=0.02)
    return figure


def draw_panel(axes: Axes, name: str, lines: Sequence[Effect | None], over: OverSets) -> None:
    """Draw the effects of all rows in a domain."""
    axes.set_title(name, fontsize="medium")
    axes.set_xscale("asinh", linear_width=2 * over.margin)
    axes.axvspan(-over.margin, over.margin, color=COLORS[2], alpha=0.12, linewidth=0)
    axes.axvline(0, color="black", linewidth=0.8)
    shown = [(y, one.parts[name]) for y, one in enumerate(lines) if one and name in one.parts]
    for y, part in shown:
        color = VERDICT_COLOURS.get(part.verdict, UNDECIDED_COLOUR)
        if all(map(isfinite, part.interval)):
            axes.plot(part.interval, [y, y], color=color, linewidth=2.2, solid_capstyle="butt")
        about: dict[str, Any] = {"marker": "|", "markersize": 9, "markeredgewidth": 2.2}
        axes.plot([part.estimate], [y], color=color, **about)
    set_ticks(axes, [part for _, part in shown], over.margin)


def say_verdict(axes: Axes, one: Effect, y: int, over: OverSets) -> None:
    """Write a row's verdict at the right."""
    axes.annotate(
        one.verdict + ", small" * over.is_small(one),
        (1, y),
        (6, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        color=VERDICT_COLOURS.get(one.verdict, UNDECIDED_COLOUR),
        annotation_clip=False,
    )


def name_lines(axes: Axes, lines: Sequence[Effect | None]) -> None:
    """Write the rows at the left, and a heading over the controls."""
    places = [y for y, line in enumerate(lines) if line is not None]
    names = [line.name for line in lines if line is not None]
    axes.set_yticks(places, names, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if None in lines:
        place: dict[str, Any] = {
            "transform": axes.get_yaxis_transform(),
            "va": "center",
            "ha": "right",
        }
        axes.text(-0.02, lines.index(None), CONTROLS, weight="bold", **place)


def set_ticks(axes: Axes, shown: Sequence[Part], margin: float) -> None:
    """Let the axis reach over all effects and their intervals, and the margin."""
    ends = [end for one in shown for end in (*one.interval, one.estimate) if isfinite(end)]
    least, most = 1.15 * min([*ends, -margin]), 1.15 * max([*ends, margin])
    axes.set_xlim(least, most)
    steps = [tick for tick in TICKS if tick >= margin]
    ticks = [x for x in [*(-step for step in steps), 0, *steps] if least <= x <= most]
    axes.set_xticks(ticks, [signed(tick, 0) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", labelsize=6.5, rotation=90)  # +10 and +20 stand close
