"""Figures as plain values, which templates draw as SVG: rows of dots in panels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import NamedTuple

from contrastbench.benchmarks.comparison.over_sets import Effect, OverSets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.comparison.verdicts import Verdicts
from contrastbench.benchmarks.report.words import over_domains
from contrastbench.benchmarks.tables.entries import Entry, signed
from contrastbench.benchmarks.tables.replication import (
    CAME_BACK,
    MAX_STANDARD_ERRORS,
    MISSED,
    TOO_WIDE,
)

MIN_MARGINS, MAX_MARGINS = 2, 4  # margins that an axis of effects has room for on both sides
MAX_PANELS = 8  # that stand side by side on a page
ROOM = 1060  # pixels that all panels share
EDGE = 7  # pixels beside an axis, so that whole marks are seen


class Dot(NamedTuple):
    """One row's place in a panel."""

    value: float | None = None  # ours, filled
    interval: tuple[float, float] | None = None
    printed: float | None = None  # theirs, hollow
    kind: str = ""  # a verdict, which gives colour and shape
    text: str = ""  # beside the mark


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
        """Return the legend: each kind of dots that is there, with its meaning."""
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
    """Return effects in each domain and their mean; None where no verdict is possible.

    Losses that are the same runs share a line. The mean has the colour of a verdict where the
    verdict is on it.
    """
    over = verdicts.over
    losses = [loss for loss in over.contestants if not loss.is_copy]
    if not (losses and over.decides):
        return None
    controls = [effect for effect in over.effects if effect.must]
    shown = [*losses, *controls]
    places = {name: dict(effects_in(over, shown, name)) for name in over.domains}
    # a mean is judged where no domain is
    mean = {
        e.row: effect_dot(e, over, e.estimate, e.interval, "" if len(e.parts) > 1 else e.verdict)
        for e in shown
    }
    several = len(over.domains) > 1
    columns = {**places, "mean over domains": mean} if several else {over.domains[0]: mean}
    ends = [end for dots in columns.values() for loss in losses for end in ends_of(dots[loss.row])]
    axis = effect_axis(ends, over.margin)
    width = ROOM // max(2, len(columns)) - 60
    panels = [
        Panel(name, [dots[effect.row] for effect in shown], *axis, 0, over.margin, "", width, True)
        for name, dots in columns.items()
    ]
    rows = [Row(effect.name, effect.row, note(effect), bool(effect.must)) for effect in shown]
    texts = (
        f"{effect.row} {signed(effect.estimate, over.decimals)}, {over_domains(effect)}"
        for effect in shown
    )
    words = f"Effects against {verdicts.base} in {over.unit}: {'; '.join(texts)}."
    return Figure(rows, panels, words, VERDICTS)


def note(effect: Effect) -> str:
    """Say what a row's name does not: that it joined, or that trainings failed."""
    return ", ".join(
        ["joined"] * effect.joined + [f"failed on {effect.failed}"] * bool(effect.failed)
    )


def effects_in(over: OverSets, shown: Sequence[Effect], domain: str) -> Iterator[tuple[str, Dot]]:
    """Yield each row with its place in one domain, which has a verdict where seeds are drawn."""
    for row in shown:
        sets = {name: effect for name, effect in row.by_set.items() if name[0] == domain}
        if part := row.parts.get(domain):
            dot = effect_dot(row, over, part.estimate, part.interval, part.verdict)
        elif sets:
            ends = over.test.interval(sets, ALPHA)
            dot = effect_dot(row, over, row.by_domain[domain], ends, "undecided")
        else:
            dot = Dot(text="–")
        yield row.row, dot


def effect_dot(
    effect: Effect, over: OverSets, mean: float, interval: tuple[float, float], verdict: str
) -> Dot:
    """Return the place of an effect with its interval, if it has one."""
    ends = interval if all(map(isfinite, interval)) else None
    text = signed(mean, over.decimals).replace("-", "−")
    return Dot(mean, ends, None, "control" if effect.must else verdict, text)


def differences_figure(verdicts: Verdicts) -> Figure | None:
    """Return the differences from the baseline on each of few data sets, on one axis."""
    shown = [place for place in verdicts.places if place.difference is not None]
    columns = list(dict.fromkeys(place.column for place in shown))
    if not shown or len(columns) > MAX_PANELS:
        return None
    rows = list(dict.fromkeys(place.row for place in shown))
    places = {(place.row, place.column): difference_dot(place) for place in shown}
    losses = [dot for place, dot in zip(shown, places.values(), strict=True) if not place.control]
    ends = [end for dot in losses or places.values() for end in ends_of(dot)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    width = ROOM // max(2, len(columns)) - 60
    panels = [
        Panel(column, [places.get((row, column), Dot(text="–")) for row in rows], low, high,
              1, 0.0, "", width, True)
        for column in columns
    ]  # fmt: skip
    controls = {place.row for place in shown if place.control}
    named = [Row(row, row, "", row in controls) for row in rows]
    texts = (f"{place.row} on {place.column} {signed(place.difference, 2)}" for place in shown)
    words = f"Differences from {verdicts.base} in points: {'; '.join(texts)}."
    return Figure(named, panels, words, VERDICTS)


def difference_dot(place: Comparison) -> Dot:
    """Return the place of a difference with its interval."""
    middle, half = place.difference or 0.0, place.half_width
    ends = None if half is None else (middle - half, middle + half)
    text = signed(middle, 1).replace("-", "−")
    return Dot(middle, ends, None, "control" if place.control else place.verdict, text)


def printed_figure(lines: Sequence[Sequence[Entry]], decimals: int) -> Figure | None:
    """Return each printed value, hollow, beside ours, in the columns that have some of both."""
    columns = [
        places
        for places in zip(*lines, strict=True)
        if any(place.ours for place in places) and any(place.paper for place in places)
    ]
    if not 0 < len(columns) <= MAX_PANELS:
        return None
    shown = [
        i for i in range(len(lines)) if any(places[i].ours or places[i].paper for places in columns)
    ]
    width = ROOM // max(2, len(columns)) - 60
    shown.sort(key=lambda i: row_of(lines[i]).control)  # these stand below the others
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
    """Return one column of printed and own values."""
    dots = [printed_dot(place, decimals) for place in places]
    values = [end for dot in dots for end in (*ends_of(dot), dot.printed) if end is not None]
    known = [place.back.verdict for place in places if place.back]
    wide = f", {known.count(TOO_WIDE)} too wide" if TOO_WIDE in known else ""
    note = f"{known.count(CAME_BACK)} of {len(known)} came back{wide}" if known else ""
    low, high = min(values), max(values)
    return Panel(places[0].column, dots, low, high, int(high - low < 5), 0.0, note, width)


def printed_dot(entry: Entry, decimals: int) -> Dot:
    """Return ours with two standard errors, and the printed value."""
    printed = entry.paper.mean if entry.paper else None
    known = entry.difference is not None
    text = signed(entry.difference, decimals).replace("-", "−") if known else ""
    if entry.ours is None:
        return Dot(None, None, printed, "", text)
    half = MAX_STANDARD_ERRORS * (entry.ours.std or 0.0) / sqrt(entry.ours.n or 1)
    kinds = {CAME_BACK: "equal", MISSED: "worse", TOO_WIDE: "undecided"}
    kind = kinds[entry.back.verdict] if entry.back else "control"
    mean = entry.ours.mean
    return Dot(mean, (mean - half, mean + half) if half else None, printed, kind, text)


def ends_of(dot: Dot) -> tuple[float, ...]:
    """Return what an axis has to reach: an interval, or else the value."""
    return dot.interval or (() if dot.value is None else (dot.value,))


def effect_axis(ends: Sequence[float], margin: float) -> tuple[float, float]:
    """Return the ends of an axis for these ends of intervals, which few far ones do not stretch.

    >>> effect_axis([-12.0, 300.0], 10.0)
    (-20.0, 40.0)
    """
    least, most = MIN_MARGINS * margin, MAX_MARGINS * margin
    return max(min([*ends, -least]), -most), min(max([*ends, least]), most)
