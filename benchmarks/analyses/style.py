"""Colours, marks and lines of the figures of analyses."""

from typing import Any

# readable on white and on black
COLORS = ("#2f7fd1", "#d9822b", "#3a9a6b", "#a45cc0", "#cf4b5a", "#7a7f87")
MARKERS = "os^Dvp"
LINE_STYLES = ("-", "--", "-.", ":", "-", "--")
RC: dict[Any, Any] = {
    "svg.fonttype": "path",  # files stand alone: letters look the same everywhere
    "svg.hashsalt": "contrastbench",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
