"""Plots of differences from a baseline: a forest of a few, a heat map of many."""

from collections.abc import Sequence
from math import asinh
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from contrastbench.benchmarks.comparison.compare import DECIDED_VERDICTS
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.verdicts import Verdicts
from contrastbench.benchmarks.report.comparison import with_half_width
from contrastbench.benchmarks.report.plots import (
    RC,
    UNDECIDED_COLOUR,
    VERDICT_COLOURS,
    Drawing,
)

MAX_FOREST_ROWS = 60  # comparisons of a forest
INK = "#111418"  # on coloured ground, which is the same on every page
# inches: of a line, left of a map, right for slanted names
LINE_INCHES, MARGIN_INCHES, SLANT_INCHES = 0.2, 1.6, 0.7
SCALE = matplotlib.colormaps["RdBu"]
ROW_COLUMN = ("row", "column")


def differences_plot(found: Verdicts) -> Drawing | None:
    """Differences from the baseline with their 95 % intervals; None where there is none."""
    shown, decimals = (
        [one for one in found.places if one.difference is not None],
        found.table.decimals,
    )
    if not shown:
        return None
    few = len(shown) <= MAX_FOREST_ROWS
    with matplotlib.rc_context(RC):
        figure = forest(shown) if few else heat_map(found.places, decimals)
        texts = (
            f"{one.row} on {one.column} {with_half_width(one, decimals)} ({one.verdict})"
            for one in shown
        )
        return Drawing(figure, f"Differences from {found.base}: {'; '.join(texts)}.")


def forest(shown: Sequence[Comparison]) -> Figure:
    """A line for each comparison, below the name of its column."""
    columns = list(dict.fromkeys(one.column for one in shown))
    height = LINE_INCHES * (len(shown) + len(columns)) + 0.45
    figure = Figure(figsize=(4.6, height))
    axes = figure.add_axes((0.4, 0.4 / height, 0.57, 1 - 0.45 / height))
    axes.axvline(0, color="black", linewidth=0.8)
    lines: list[Comparison | str] = []  # a column's name, then its comparisons
    for column in columns:
        lines += [column, *(one for one in shown if one.column == column)]
    for y, line in enumerate(lines):
        if isinstance(line, str):
            about: dict[str, Any] = {"weight": "bold", "va": "center", "parse_math": False}
            axes.text(-0.68, y, line, transform=axes.get_yaxis_transform(), **about)
        else:
            draw_difference(axes, line, y)
    names = {y: line.row for y, line in enumerate(lines) if not isinstance(line, str)}
    axes.set_yticks(list(names), list(names.values()), parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlabel("difference in percent points, 95 % interval")
    return figure


def draw_difference(axes: Axes, one: Comparison, y: int) -> None:
    """A point with its interval, in the colour of its verdict."""
    assert one.difference is not None, "only such are shown"
    color = VERDICT_COLOURS.get(one.verdict, UNDECIDED_COLOUR)
    if one.half_width is not None:
        ends = [one.difference - one.half_width, one.difference + one.half_width]
        axes.plot(ends, [y, y], color=color, linewidth=1.4, solid_capstyle="butt")
    axes.plot([one.difference], [y], color=color, marker="o", markersize=4.5)


def heat_map(comparisons: Sequence[Comparison], decimals: int) -> Figure:
    """Methods by data sets: colour is the difference, a frame that it is decided.

    A method that is the baseline's loss on a set says so there.
    """
    shown = [one for one in comparisons if one.same or one.difference is not None]
    rows, columns = (list(dict.fromkeys(getattr(one, key) for one in shown)) for key in ROW_COLUMN)
    width, height = MARGIN_INCHES + 0.5 * len(columns) + SLANT_INCHES, 1.0 + 0.3 * len(rows)
    figure = Figure(figsize=(width, height))
    share = 0.5 * len(columns) / width
    axes = figure.add_axes((MARGIN_INCHES / width, 0, share, 0.3 * len(rows) / height))
    most = max(abs(one.difference or 0.0) for one in shown) or 1.0
    for one in shown:
        place = columns.index(one.column), rows.index(one.row)
        draw_cell(axes, place, one, decimals, most)
    name_cells(axes, rows, columns)
    return figure


def draw_cell(
    axes: Axes, place: tuple[int, int], one: Comparison, decimals: int, most: float
) -> None:
    """A difference on its colour, which is darkest for `most`; a word where it is one loss."""
    (x, y), ground = place, color_of(one.difference or 0.0, most)
    edge = INK if one.verdict in DECIDED_VERDICTS else "none"
    corner = (x + 0.03, y + 0.04)
    axes.add_patch(Rectangle(corner, 0.94, 0.92, facecolor=ground, edgecolor=edge))
    about: dict[str, Any] = {"ha": "center", "va": "center", "size": 6.5, "color": INK}
    text = "same" if one.difference is None else with_half_width(one, decimals, "\n±")
    axes.text(x + 0.5, y + 0.5, text, **about)


def color_of(difference: float, most: float) -> tuple[float, float, float, float]:
    """Blue above zero, red below; beside 60 points one can still be seen.

    From about a point on the colour grows with the logarithm.
    """
    return SCALE(0.5 + 0.35 * asinh(difference) / asinh(most))


def name_cells(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Methods at the left, data sets above, and no axes."""
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.xaxis.tick_top()
    middles = [i + 0.5 for i in range(len(columns))]
    axes.set_xticks(middles, columns, rotation=55, ha="left", parse_math=False)
    axes.set_yticks([i + 0.5 for i in range(len(rows))], rows, parse_math=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
