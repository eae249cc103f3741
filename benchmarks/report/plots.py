"""Plots of the report as SVG text that takes the page's colours and fonts."""

import io
import re
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure

COLORS = (
    "#2f7fd1",
    "#d9822b",
    "#3a9a6b",
    "#a45cc0",
    "#cf4b5a",
    "#7a7f87",
)  # readable on white and on black
# blue and orange: colour-blind people tell them apart
VERDICT_COLOURS = {"better": COLORS[0], "worse": COLORS[1], "equal": COLORS[2]}
UNDECIDED_COLOUR = COLORS[5]
MARKERS = "os^Dvp"
LINE_STYLES = ("-", "--", "-.", ":", "-", "--")
SVG = "{http://www.w3.org/2000/svg}"
ElementTree.register_namespace("", SVG[1:-1])
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
RC: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "contrastbench",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}


TIGHT_FIGURE: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.04}  # no label is cut


class Drawing(NamedTuple):
    """A figure with its description in words."""

    figure: Figure
    words: str

    def svg(self) -> str:
        """Return the plot as SVG in the page's colours, with a description for screen readers."""
        with matplotlib.rc_context({**RC, "svg.hashsalt": self.words}):  # ids differ by figure
            return svg(self.figure, self.words)

    def save(self, folder: Path, name: str) -> None:
        """Save the figure for papers and slides, as NAME.svg and NAME.pdf."""
        stem = re.sub(r"[^\w.+-]+", "-", name).strip("-")
        (folder / f"{stem}.svg").write_text(self.picture(), encoding="utf-8")
        about = {"CreationDate": None, "Subject": self.words}
        with matplotlib.rc_context({**RC, "pdf.fonttype": 42}):
            self.figure.savefig(folder / f"{stem}.pdf", metadata=about, **TIGHT_FIGURE)

    def picture(self) -> str:
        """Return the figure as an SVG file on white, with its description."""
        out, about = io.StringIO(), {"Date": None, "Description": self.words}
        with matplotlib.rc_context(RC):
            self.figure.savefig(out, format="svg", metadata=about, **TIGHT_FIGURE)
        return out.getvalue()


def described(picture: str) -> str:
    """Return the description of a saved figure; empty where it has none.

    >>> described("<svg/>")
    ''
    """
    found = ElementTree.fromstring(picture).find(".//{http://purl.org/dc/elements/1.1/}description")
    return (found.text or "") if found is not None else ""


def svg(figure: Figure, text: str) -> str:
    """Return the figure for a page; `text` describes it for screen readers."""
    out = io.StringIO()
    about = {"Date": None, "Creator": None}
    figure.savefig(out, format="svg", transparent=True, metadata=about, **TIGHT_FIGURE)
    root = ElementTree.fromstring(out.getvalue())
    for child in [*root.iter(f"{SVG}metadata"), *root.iter(f"{SVG}defs")]:
        if child in list(
            root
        ):  # the licence of nothing, and a style that would reach the whole page
            root.remove(child)
    for element in root.iter():
        if element.tag == f"{SVG}g":
            element.attrib.pop("id", None)  # the same in every figure
        style = element.get("style", "").replace("#000000", "currentColor")
        kept = [part for part in style.split("; ") if part and not part.startswith("font-family")]
        if kept:
            element.set("style", "; ".join(kept))
    root.attrib |= {"role": "img", "aria-label": text}
    return ElementTree.tostring(root, encoding="unicode")
