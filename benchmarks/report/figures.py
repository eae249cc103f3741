"""Figures as plain values, which templates draw as SVG: rows of dots in panels."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import NamedTuple

from contrastbench.benchmarks.comparison.compare import Verdicts
from contrastbench.benchmarks.comparison.over_sets import Judged, Part
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.tables import entries
from contrastbench.benchmarks.tables.entries import Entry, signed

MIN_MARGINS, MAX_MARGINS = 2, 4  # margins that an axis of effects has room for on both sides
MAX_PANELS = 8  # that stand side by side on a page
ROOM = 1060  # pixels that all panels share
EDGE = 7  # pixels beside an axis, so that whole marks are seen


class Dot(NamedTuple):
    """One row's place in a panel."""

    value: float | None = None  # ours, filled
    half: float = 0.0  # of its interval; 0: none is known
    printed: float | None = None  # theirs, hollow
    kind: str = ""  # a verdict, which gives colour and shape
    text: str = ""  # beside the mark
    sets: Sequence[float] = ()  # the effects that a mean is of

    @property
    def ends(self) -> tuple[float, ...]:
        """Return what an axis has to reach: the ends of the interval, or the value as both."""
        return () if self.value is None else (self.value - self.half, self.value + self.half)


class Row(NamedTuple):
    """The name of a line of dots."""

    name: str
    loss: str = ""  # whose page it links
    note: str = ""
    control: bool = False


@dataclass(frozen=True)
class Panel:
    """A column of a figure: a dot of each row on one axis; what lies outside is cut at its ends."""

    title: str
    dots: Sequence[Dot]
    low: float
    high: float
    decimals: int = 0
    margin: float = 0.0  # effects within it are equal
    note: str = ""
    width: int = 200
    signs: bool = False  # the axis is of differences

    def x(self, value: float) -> float:
        """Return the place of a value.

        >>> panel = Panel("", [], -100, 100, width=214)
        >>> panel.x(0), panel.x(-500)
        (107.0, 7.0)
        """
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / ((self.high - self.low) or 1)
        return round(EDGE + share * (self.width - 2 * EDGE), 1)

    def at(self, width: int) -> "Panel":
        return replace(self, width=width)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return the numbers below the title: both ends, and zero between them."""
        values = [self.low, 0.0, self.high] if self.low < 0 < self.high else [self.low, self.high]
        texts = [signed(v, 0) if self.signs else f"{v:.{self.decimals}f}" for v in values]
        return [(v, text.replace("-", "−")) for v, text in zip(values, texts, strict=True)]


@dataclass(frozen=True)
class Figure:
    """Rows of a figure, with a panel for each thing that they show."""

    rows: Sequence[Row]
    panels: Sequence[Panel]
    words: str  # for screen readers
    meanings: Mapping[str, str]  # of kinds of dots

    @property
    def key(self) -> list[tuple[str, str]]:
        dots = [dot for panel in self.panels for dot in panel.dots]
        there = {dot.kind.split(" ")[0] for dot in dots}
        there |= {"printed" for dot in dots if dot.printed is not None}
        return [(kind, meaning) for kind, meaning in self.meanings.items() if kind in there]

    def only(self, loss: str) -> "Figure | None":
        """Return the line of one loss; None where it has none."""
        places = [i for i, row in enumerate(self.rows) if loss in row.name.split(", ")]
        panels = [replace(panel, dots=[panel.dots[i] for i in places]) for panel in self.panels]
        return replace(self, rows=[self.rows[i] for i in places], panels=panels) if places else None


VERDICTS = {kind: kind for kind in ("better", "worse", "equal", "undecided", "control")}
PRINTED = {
    "printed": "printed",
    "equal": "ours, came back",
    "worse": "ours, did not",
    "undecided": "ours, too wide to tell",
    "control": "no printed value",
}


def effects_figure(verdicts: Verdicts) -> Figure | None:
    """Return the mean effect of each row, and each domain with its sets; None without verdicts."""
    losses = [row for row in verdicts.rows if not row.effect.same]
    if not (losses and verdicts.decides):
        return None
    shown, scale = [*losses, *verdicts.controls], verdicts.counted.scale
    domains = verdicts.domains
    columns = {name: [domain_dot(row, name, scale.decimals) for row in shown] for name in domains}
    if len(domains) > 1:
        over = [effect_dot(row, row.over, scale.decimals) for row in shown]
        columns = {"mean over domains": over, **columns}
    ends = [end for dots in columns.values() for dot in dots[: len(losses)] for end in dot.ends]
    axis, width = effect_axis(ends, scale.margin), panel_width(columns)
    panels = [
        Panel(name, dots, *axis, 0, scale.margin, scale.unit, width, True)
        for name, dots in columns.items()
    ]
    rows = [Row(row.effect.name, row.effect.row, note(row), bool(row.must)) for row in shown]
    texts = (
        f"{row.effect.row} {signed(row.over.mean, scale.decimals)}, {row.over.verdict}"
        for row in shown
    )
    words = f"Effects against {verdicts.base} in {scale.unit}: {'; '.join(texts)}."
    return Figure(rows, panels, words, VERDICTS)


def note(row: Judged) -> str:
    """Say what a row's name does not: that it joined, or that trainings failed."""
    failed = len(row.effect.failed)
    return ", ".join(["joined"] * row.effect.joined + [f"failed on {failed}"] * bool(failed))


def domain_dot(row: Judged, domain: str, decimals: int) -> Dot:
    part = row.by_domain.get(domain)
    if part is None:
        return Dot(text="–")
    sets = [effect for name, effect in row.effect.by_set.items() if name[0] == domain]
    return effect_dot(row, part, decimals)._replace(sets=sets)


def effect_dot(row: Judged, part: Part, decimals: int) -> Dot:
    kind = "control" if row.must else part.verdict.replace("untested", "undecided")
    return mean_dot(part.mean, part.half, decimals, kind)


def differences_figure(verdicts: Verdicts) -> Figure | None:
    """Return the differences from the baseline on each of few data sets, on one axis."""
    shown = [place for place in verdicts.places if place.difference is not None]
    columns = list(dict.fromkeys(place.column for place in shown))
    if not shown or len(columns) > MAX_PANELS:
        return None
    rows = {place.row: Row(place.row, place.row, "", bool(place.control)) for place in shown}
    dots = {(place.row, place.column): difference_dot(place) for place in shown}
    losses = [dot for dot in dots.values() if dot.kind != "control"]
    ends = [0.0, *(end for dot in losses or dots.values() for end in dot.ends)]
    about = min(ends), max(ends), 1, 0.0, "points", panel_width(columns), True
    panels = [
        Panel(column, [dots.get((row, column), Dot(text="–")) for row in rows], *about)
        for column in columns
    ]
    texts = (f"{place.row} on {place.column} {signed(place.difference, 2)}" for place in shown)
    words = f"Differences from {verdicts.base} in points: {'; '.join(texts)}."
    return Figure([*rows.values()], panels, words, VERDICTS)


def difference_dot(place: Comparison) -> Dot:
    kind = "control" if place.control else place.verdict
    return mean_dot(place.difference or 0.0, place.half_width or 0.0, 1, kind)


def mean_dot(mean: float, half: float, decimals: int, kind: str) -> Dot:
    return Dot(mean, half if isfinite(half) else 0.0, None, kind, with_minus(mean, decimals))


def printed_figure(lines: Sequence[Sequence[Entry]], decimals: int) -> Figure | None:
    """Return each printed value, hollow, beside ours, in the columns that have some of both."""
    columns = [
        places
        for places in zip(*lines, strict=True)
        if any(place.ours for place in places) and any(place.paper for place in places)
    ]
    if not 0 < len(columns) <= MAX_PANELS:
        return None
    there = [any(x[i].ours or x[i].paper for x in columns) for i in range(len(lines))]
    shown = [i for i, some in enumerate(there) if some]
    shown.sort(key=lambda i: row_of(lines[i]).control)  # these stand below the others
    width = panel_width(columns)
    panels = [printed_panel([places[i] for i in shown], decimals, width) for places in columns]
    rows = [row_of(lines[i]) for i in shown]
    words = "Printed and own values: " + "; ".join(
        f"{panel.title}: {panel.note or 'nothing printed was run'}" for panel in panels
    )
    return Figure(rows, panels, f"{words}.", PRINTED)


def row_of(places: Sequence[Entry]) -> Row:
    """Return the name of a row of a table; one that no paper printed stands below the others."""
    line = places[0].line
    return Row(line.name, line.row.loss or "", control=not any(place.paper for place in places))


def printed_panel(places: Sequence[Entry], decimals: int, width: int) -> Panel:
    dots = [printed_dot(place, decimals) for place in places]
    values = [end for dot in dots for end in (*dot.ends, dot.printed) if end is not None]
    known = [place.back for place in places if place.back]
    wide = f", {known.count(entries.TOO_WIDE)} too wide" if entries.TOO_WIDE in known else ""
    note = f"{known.count(entries.CAME_BACK)} of {len(known)} came back{wide}" if known else ""
    low, high = min(values), max(values)
    return Panel(places[0].column, dots, low, high, int(high - low < 5), 0.0, note, width)


def printed_dot(entry: Entry, decimals: int) -> Dot:
    """Return ours with two standard errors, and the printed value."""
    printed = entry.paper.mean if entry.paper else None
    if entry.ours is None:
        return Dot(printed=printed)
    text = "" if entry.difference is None else with_minus(entry.difference, decimals)
    half = entries.MAX_STANDARD_ERRORS * (entry.ours.std or 0.0) / sqrt(entry.ours.n or 1)
    kinds = {entries.CAME_BACK: "equal", entries.MISSED: "worse", entries.TOO_WIDE: "undecided"}
    kind = kinds.get(entry.back, "control")
    return Dot(entry.ours.mean, half, printed, kind, text)


def panel_width(columns: Sized) -> int:
    return ROOM // max(2, len(columns)) - 60


def with_minus(value: float, decimals: int) -> str:
    """Format a number with its sign, with a real minus.

    >>> with_minus(-0.71, 1)
    '−0.7'
    """
    return signed(value, decimals).replace("-", "−")


def effect_axis(ends: Sequence[float], margin: float) -> tuple[float, float]:
    """Return the ends of an axis for these ends of intervals, which few far ones do not stretch.

    >>> effect_axis([-12.0, 300.0], 10.0)
    (-20.0, 40.0)
    """
    least, most = MIN_MARGINS * margin, MAX_MARGINS * margin
    return max(min([*ends, -least]), -most), min(max([*ends, least]), most)
