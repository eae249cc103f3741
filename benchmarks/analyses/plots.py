"""Figures in the style of the report's plots, on white."""

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contrastbench.benchmarks.analyses.style import RC

matplotlib.rcParams.update(RC)
PANELS_PER_ROW = 4  # panels beside each other


def figure(
    title: str, panels: int, square: bool = False, columns: int = PANELS_PER_ROW
) -> tuple[Figure, Sequence[Axes]]:
    """A titled figure with that many panels."""
    columns = min(panels, columns)
    lines = -(-panels // columns)
    width = 2.6 if square else 3.2
    drawing = Figure(figsize=(width * columns + 0.4, 2.7 * lines + 0.7), layout="constrained")
    drawing.suptitle(title, parse_math=False, fontsize=10)
    grid = drawing.subplots(lines, columns, squeeze=False).flatten().tolist()
    for unused in grid[panels:]:
        unused.set_axis_off()
    return drawing, grid[:panels]


def shared_legend(drawing: Figure, axes: Axes, title: str | None = None, columns: int = 4) -> None:
    """One legend below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    where: dict[str, Any] = {
        "loc": "outside lower center",
        "ncols": min(len(labels), columns),
        "frameon": False,
    }
    box = drawing.legend(handles, labels, title=title, **where)
    for text in box.get_texts():
        text.set_parse_math(False)
