"""The score of each method against its time."""

from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from contrastbench.benchmarks.report.plots import COLORS, MARKERS, RC, Drawing

WIDE_RANGE = 5  # times from which on the axis is logarithmic
LINE_INCHES = 0.19  # of a name in the key


def cost_plot(points: Sequence[tuple[str, float, float]], metric: str) -> Drawing:
    """Seconds of a seed against the score; the names stand beside it, the best score first.

    Args:
        points: method, seconds and score, each a mean over the columns that all methods fill.
        metric: what the score is called.
    """
    best_first = sorted(points, key=lambda point: -point[2])
    height = max(2.8, LINE_INCHES * len(points) + 0.3)
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(4.4, height))
        axes = figure.add_axes((0.13, 0.45 / height, 0.85, 1 - 0.55 / height))
        for i, (name, seconds, score) in enumerate(best_first):
            color, marker = mark_of(i)
            axes.plot([seconds], [score], color=color, marker=marker, ls="none", label=name)
        times = [seconds for _, seconds, _ in points]
        if max(times) > WIDE_RANGE * min(times) > 0:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("seconds a seed")
        axes.set_ylabel(metric, parse_math=False)
        key = axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        for text in key.get_texts():
            text.set_parse_math(False)
        shown = "; ".join(f"{name} {y:.2f} in {x:.1f} s" for name, x, y in points)
        return Drawing(figure, f"Score against seconds a seed: {shown}.")


def mark_of(i: int) -> tuple[str, str]:
    """Return the colour and the shape of a point; 36 of them differ, and neighbours in both.

    >>> len({mark_of(i) for i in range(36)})
    36
    """
    turn, place = divmod(i, len(COLORS))
    return COLORS[place], MARKERS[(place + turn) % len(MARKERS)]
