"""Figures in the style of the report's plots, on white."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

# readable on white and on black; neighbours differ in both, as many curves fall together
COLORS = ("#2f7fd1", "#d9822b", "#3a9a6b", "#a45cc0", "#cf4b5a", "#7a7f87")
STYLES = cycler(color=COLORS * 2) + cycler(linestyle=("-", "--", "-.", ":") * 3)
RC: dict[Any, Any] = {
    "svg.fonttype": "path",  # files stand alone: letters look the same everywhere
    "svg.hashsalt": "contrastbench",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.prop_cycle": STYLES,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
matplotlib.rcParams.update(RC)
PANELS_PER_ROW = 4  # panels beside each other


def step_panels(title: str, names: Sequence[str], curves: Mapping[str, Tensor]) -> Figure:
    """Draw a panel for each name against the step, with a line for each training."""
    drawing, panels = figure(title, len(names))
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for label, values in curves.items():
            axes.plot(range(1, len(values) + 1), values[:, i].tolist(), label=label)
        axes.set_title(name, fontsize=8, parse_math=False)
        axes.set_xlabel("training step")
    shared_legend(drawing, panels[0], columns=2)
    return drawing


def figure(title: str, panels: int, columns: int = PANELS_PER_ROW) -> tuple[Figure, Sequence[Axes]]:
    """A titled figure with that many panels."""
    columns = min(panels, columns)
    lines = -(-panels // columns)
    drawing = Figure(figsize=(3.2 * columns + 0.4, 2.7 * lines + 0.7), layout="constrained")
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
