"""Plots of the report as SVG text that takes the page's colours and fonts."""

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contrastbench.benchmarks.comparison.statistics import Ranking, mean_std
from contrastbench.benchmarks.records.store import Fields, Record, canonical
from contrastbench.benchmarks.report.groups import Group

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


@dataclass(frozen=True)
class PlotLine:
    """A metric against one setting, all others held."""

    held: dict[str, Any]
    x: list[float]
    mean: list[float]
    std: list[float]
    n: list[int]


@dataclass(frozen=True)
class Sensitivity:
    """Lines of one setting for a loss on a dataset."""

    domain: str
    dataset: str
    loss: str
    setting: str
    metric: str
    lines: list[PlotLine]
    tuning: bool = False  # of seeds that choose parameters, which are no results

    @property
    def title(self) -> str:
        """Return the title of the plot."""
        seeds = ", tuning seeds" if self.tuning else ""
        return f"{self.loss} on {self.dataset}: {self.metric} against {self.setting}{seeds}"

    @property
    def differing(self) -> list[str]:
        """Held settings in which the lines differ."""
        names = sorted({name for line in self.lines for name in line.held})
        return [
            name
            for name in names
            if len({canonical(line.held.get(name)) for line in self.lines}) > 1
        ]

    def label(self, line: PlotLine) -> str:
        """The line's values where lines differ."""
        return ", ".join(f"{name}={line.held.get(name)}" for name in self.differing)


SHARED_FIELDS = ("domain", "dataset", "loss", "loss_code", "data_hash")  # of what one plot shows


def sensitivities(groups: Iterable[Group]) -> Iterator[Sensitivity]:
    """Every numeric parameter or recipe value that some records differ in alone.

    Seeds that choose parameters have plots of their own.
    """
    families = defaultdict(list)
    for group in groups:
        first: Fields = group.first
        place = [first[key] for key in SHARED_FIELDS]
        for tuning in (False, True):
            if group.scores(tuning):
                families[(*place, tuning)].append(group)
    for (domain, dataset, loss, _, _, tuning), members in families.items():
        for name in varying(members):
            lines = list(lines_of(members, name, tuning))
            if lines:
                main = next(
                    record["main"] for record in members[0].records if record["status"] == "ok"
                )
                yield Sensitivity(domain, dataset, loss, name, main, lines, tuning)


def record_settings(record: Record) -> dict[str, Any]:
    """Parameters of the loss and values of the recipe."""
    return {
        **{f"recipe.{name}": value for name, value in record["recipe"].items()},
        **record["params"],
    }


def varying(members: Sequence[Group]) -> list[str]:
    """Numeric settings that take more than one value."""
    values = defaultdict(set)
    for group in members:
        for name, value in record_settings(group.first).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[name].add(value)
    return sorted(name for name, found in values.items() if len(found) > 1)


def lines_of(members: Sequence[Group], name: str, tuning: bool = False) -> Iterator[PlotLine]:
    """Groups that differ in this setting alone, the longest line first."""
    alike: dict[str, list[Group]] = defaultdict(list)
    for group in members:
        held = {key: value for key, value in record_settings(group.first).items() if key != name}
        if isinstance(record_settings(group.first).get(name), int | float):
            alike[canonical([held, group.first["protocol"]])].append(group)
    for _, found in sorted(alike.items(), key=lambda item: (-len(item[1]), item[0])):
        points = sorted(
            (record_settings(group.first)[name], group.scores(tuning)) for group in found
        )
        if len({x for x, _ in points}) > 1:
            spread = [mean_std(scores) for _, scores in points]
            held = {
                key: value for key, value in record_settings(found[0].first).items() if key != name
            }
            yield PlotLine(
                held,
                [x for x, _ in points],
                [m for m, _ in spread],
                [s or 0.0 for _, s in spread],
                [len(y) for _, y in points],
            )


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


def sensitivity_plot(what: Sensitivity) -> Drawing:
    """Means with their standard deviations; at most as many lines as there are colours."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(3.6, 2.4))
        axes = figure.add_axes((0.16, 0.19, 0.82, 0.77))
        for line, color, marker, style in zip(
            what.lines, COLORS, MARKERS, LINE_STYLES, strict=False
        ):
            axes.errorbar(
                line.x,
                line.mean,
                line.std,
                color=color,
                marker=marker,
                linestyle=style,
                markersize=4,
                linewidth=1.2,
                capsize=2,
                elinewidth=0.7,
            )
        every = sorted({x for line in what.lines for x in line.x})
        if every[0] > 0 and every[-1] / every[0] > 20:
            axes.set_xscale("log")
        if len(every) <= 8:
            axes.set_xticks(every, [f"{x:g}" for x in every])
            axes.set_xticks([], minor=True)
        axes.set_xlabel(what.setting, parse_math=False)
        axes.set_ylabel(what.metric, parse_math=False)
        return Drawing(figure, plot_text(what))


def plot_text(what: Sensitivity) -> str:
    """The plot in words."""
    line = what.lines[0]
    points = ", ".join(
        f"{mean:.2f} at {x:g} (n = {n})"
        for x, mean, n in zip(line.x, line.mean, line.n, strict=True)
    )
    return f"{what.title}. {'First line: ' if len(what.lines) > 1 else ''}{points}."


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


def cost_plot(points: Iterable[tuple[str, float, float]], metric: str) -> Drawing:
    """Seconds of a seed against the score.

    Args:
        points: method, seconds and score, each a mean over the columns that all methods fill.
        metric: what the score is called.
    """
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(4.4, 2.8))
        axes = figure.add_axes((0.13, 0.16, 0.85, 0.8))
        for i, (name, seconds, score) in enumerate(points):
            color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
            axes.plot([seconds], [score], color=color, marker=marker, linestyle="none")
            about: dict[str, Any] = {
                "textcoords": "offset points",
                "va": "center",
                "parse_math": False,
            }
            axes.annotate(name, (seconds, score), (6, 0), annotation_clip=False, **about)
        times = [seconds for _, seconds, _ in points]
        if max(times) > 5 * min(times) > 0:
            axes.set_xscale("log")
        axes.set_xlabel("seconds a seed")
        axes.set_ylabel(metric, parse_math=False)
        shown = "; ".join(f"{name} {y:.2f} in {x:.1f} s" for name, x, y in points)
        return Drawing(figure, f"Score against seconds a seed: {shown}.")


def draw_scale(axes: Axes, k: int, difference: float) -> None:
    """The axis of ranks, and the critical difference above it, cut at the axis's end."""
    axes.plot([1, k], [0.55, 0.55], color="black", linewidth=0.8, clip_on=False)
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0.5, 0.55], color="black", linewidth=0.8, clip_on=False)
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
