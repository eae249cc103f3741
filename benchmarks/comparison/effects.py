"""Effects on data sets: differences from the baseline that are comparable between sets.

A difference of one point says little where training gains thirty, and much where it gains two. So
an effect is the difference from the baseline in percent of what the baseline's training gains.

Other choices of ours have effects too: points, and less search. A trial of a point with the first
seed has a validation score and a test score, so the best of the first k points by validation tells
what a smaller budget would have found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from statistics import fmean
from typing import NamedTuple

from contrastbench.benchmarks.comparison.pairs import Comparison, SetName
from contrastbench.benchmarks.comparison.statistics import DIGITS
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.tables.entries import shown_value
from contrastbench.benchmarks.tables.resolved import Resolved, ResolvedCell
from contrastbench.benchmarks.tables.scores import validation_score
from contrastbench.benchmarks.tables.searches import Finalists

LEAST_GAIN = 1.0  # percent points; a share of less is noise
MIN_STANDARD_ERRORS = 2.0  # standard errors that a gain exceeds
ALL_LOST = -100.0  # percent of the gain: a training that diverges loses all of it
STEPS = (1, 4, 8, 16)  # points of a curve; the first is a loss's defaults
UNIT, BUDGET = "percent of the gain", "the budget"  # what a verdict may hang on
Places = Mapping[str, Sequence[Comparison]]  # by row
Curves = Mapping[tuple[str, str], Mapping[int, float]]  # by row and column: scores by points
Values = Mapping[SetName, float]  # effects by set
Rows = Mapping[str, Values]


class Scale(NamedTuple):
    """The unit of effects, its decimals, and the margin within which they are equal."""

    unit: str
    decimals: int
    margin: float


POINTS = Scale("points", 1, 1.0)  # where no row says what training gains
SHARES = Scale("% of the training gain", 0, 5.0)


@dataclass(frozen=True)
class Effect:
    """One row's effects on the sets that count."""

    row: str
    by_set: Mapping[SetName, float]
    failed: frozenset[SetName] = frozenset()  # on which a training of the row has failed
    base_failed: frozenset[SetName] = frozenset()  # where the baseline diverged, the row did not
    control: str = ""
    joined: bool = False
    same: bool = False  # its runs are the baseline's wherever it has run
    also: Sequence[str] = ()  # rows that are the same runs
    waiting: bool = False  # it lacks results where it is a loss of its own

    @property
    def name(self) -> str:
        """Return the row with all that are the same runs."""
        return ", ".join([self.row, *self.also])


@dataclass(frozen=True)
class Counted:
    """Which sets and rows count, and which do not."""

    # what training gains, by column; empty: it is not known, and effects are points
    gains: Mapping[str, float] = field(default_factory=dict)
    left_out: Sequence[str] = ()  # sets on which training gains nothing clear
    to_come: int = 0  # losses that the table lists, without a result; Holm's correction counts them
    without_results: Sequence[str] = ()  # rows that nothing is known of
    not_compared: Sequence[str] = ()  # columns that only one side has run on

    @property
    def scale(self) -> Scale:
        return SHARES if self.gains else POINTS

    @property
    def nothing_counts(self) -> bool:
        return bool(self.left_out) and not self.gains


def gains_of(bare: Iterable[Comparison]) -> tuple[dict[str, float], list[str]]:
    """Return what training gains over the best bare row, by column, and columns of too little."""
    known = grouped((place.column, place) for place in bare if place.difference is not None)
    best = [max(rows, key=lambda place: place.difference or 0.0) for rows in known.values()]
    clear = {place.column: -(place.difference or 0.0) for place in best if is_clear_gain(place)}
    return clear, [place.column for place in best if place.column not in clear]


def is_clear_gain(best: Comparison) -> bool:
    """Return whether the best row without a training is so far below that its column counts."""
    gain, error = -(best.difference or 0.0), (best.std or 0.0) / sqrt(len(best.seeds))
    return gain >= LEAST_GAIN and gain >= MIN_STANDARD_ERRORS * error


def effect_of(row: str, mine: Sequence[Comparison], gains: Mapping[str, float]) -> Effect:
    kept = [place for place in mine if not gains or place.column in gains]
    found = [(place.data_set, measured(place, gains.get(place.column))) for place in kept]
    by_set = grouped((name, effect) for name, effect in found if effect is not None)
    return Effect(
        row,
        {name: fmean(columns) for name, columns in by_set.items()},  # such as two probes
        failed=frozenset(place.data_set for place in kept if place.has_failed),
        base_failed=frozenset(place.data_set for place in kept if place.base_lost),
        control=mine[0].control,
        joined=any(place.joined for place in mine),
        same=all(place.same for place in mine),
        waiting=any(place.waiting for place in mine),
    )


def measured(place: Comparison, gain: float | None) -> float | None:
    """Return the effect in one column, as a share of the gain if there is one; None: no number.

    Without a gain a place with a seed that diverged has no number.
    """
    if place.same:
        return 0.0
    if (place.has_failed and gain is None) or (place.difference is None and not place.lost):
        return None
    scale = 1.0 if gain is None else gain / 100
    values = [difference / scale for difference in place.differences]
    return fmean([*values, *[ALL_LOST] * len(place.lost)])


def by_domain(values: Values) -> dict[str, list[float]]:
    return grouped((domain, round(value, DIGITS)) for (domain, _), value in values.items())


def curves(resolved: Resolved) -> Curves:
    return {
        (line.name, column): curve(resolved, cell)
        for line in resolved.lines
        for column, cell in line.cells.items()
        if isinstance(cell.place.search, Finalists) and cell.ok
    }


def curve(resolved: Resolved, cell: ResolvedCell) -> dict[int, float]:
    """Return the test score of the best of so many points, chosen by validation with one seed."""
    search, data = cell.place.search, next(iter(cell.ok))
    assert isinstance(search, Finalists), "only such are asked"
    found = list[tuple[float, float]]()
    for trial in cell.trials:
        record = trial.finished_cells(resolved.results).get((data, search.seeds[0]))
        if record is None:
            break
        ok = record["status"] == "ok"
        score = shown_value(resolved, cell.column, record) if ok else -inf
        found.append((validation_score(trial, record), score))
    return {k: max(found[:k], key=lambda pair: pair[0])[1] for k in STEPS if k <= len(found)}


def others(
    known: Curves, base: str, by_row: Places, losses: Sequence[Effect], gains: Mapping[str, float]
) -> dict[str, Rows]:
    """Return the effects of losses by other choices, as far as records have them.

    Points stand in a unit in which as many of them are equal as are on average over sets.
    """
    if not gains:
        return {}
    kept = {row: [p for p in some if p.column in gains] for row, some in by_row.items()}
    sets = {(p.domain, p.column): gains[p.column] for some in kept.values() for p in some}
    percent = fmean(map(fmean, by_domain(sets).values())) / 100
    rows = [loss.row for loss in losses]
    in_points = {row: effect_of(row, kept[row], {}).by_set for row in rows}
    scaled = {row: {k: x / percent for k, x in some.items()} for row, some in in_points.items()}
    half = {row: effects_of_less(known, base, kept[row], gains, -2, -2) for row in rows}
    return {UNIT: scaled, **({BUDGET: half} if all(half.values()) else {})}


def effect_curve(
    known: Curves, base: str, mine: Sequence[Comparison], gains: Mapping[str, float]
) -> dict[int, float]:
    """Return a row's mean effect by the points tried, against the baseline's best of all."""
    kept = [place for place in mine if place.column in gains]
    steps = {k: effects_of_less(known, base, kept, gains, i, -1) for i, k in enumerate(STEPS)}
    shown = {k: by_domain(effects) for k, effects in steps.items() if effects}
    return {k: fmean(map(fmean, groups.values())) for k, groups in shown.items()}


def step_of(curve: Mapping[int, float], step: int) -> float | None:
    values = [*curve.values()]
    return values[step] if -len(values) <= step < len(values) else None


def effects_of_less(
    known: Curves,
    base: str,
    places: Sequence[Comparison],
    gains: Mapping[str, float],
    ours: int,
    theirs: int,
) -> Values:
    """Return effects of the best of fewer points; none where some trial is missing.

    `ours` and `theirs` are steps of the row's and the baseline's curve, or count from its end.
    """
    found: dict[SetName, list[float]] = {}
    for place in places:
        own = step_of(known.get((place.row, place.column), {}), ours)
        other = step_of(known.get((base, place.column), {}), theirs)
        if own is None or other in (None, -inf):
            return {}
        effect = ALL_LOST if own == -inf else 100 * (own - other) / gains[place.column]
        found.setdefault(place.data_set, []).append(effect)
    return {name: fmean(effects) for name, effects in found.items()}
