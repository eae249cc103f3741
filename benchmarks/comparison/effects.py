"""Effects on data sets: differences from the baseline that are comparable between sets.

A difference of one point says little where training gains thirty, and much where it gains two. So
an effect is the difference from the baseline in percent of what the baseline's training gains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from contrastbench.benchmarks.comparison.pairs import Comparison, SetName

LEAST_GAIN = 1.0  # percent points; a share of less is noise
MIN_STANDARD_ERRORS = 2.0  # standard errors that a gain exceeds
ALL_LOST = -100.0  # percent of the gain: a training that diverges loses all of it


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
    by_column: dict[str, list[Comparison]] = {}
    for place in bare:
        if place.difference is not None:
            by_column.setdefault(place.column, []).append(place)
    best = [max(rows, key=lambda place: place.difference or 0.0) for rows in by_column.values()]
    clear = {place.column: -(place.difference or 0.0) for place in best if is_clear_gain(place)}
    return clear, [place.column for place in best if place.column not in clear]


def is_clear_gain(best: Comparison) -> bool:
    """Return whether the best row without a training is so far below that its column counts."""
    gain, error = -(best.difference or 0.0), (best.std or 0.0) / sqrt(len(best.seeds))
    return gain >= LEAST_GAIN and gain >= MIN_STANDARD_ERRORS * error


def effect_of(row: str, mine: Sequence[Comparison], gains: Mapping[str, float]) -> Effect:
    kept = [place for place in mine if not gains or place.column in gains]
    found: dict[SetName, list[float]] = {}
    for place in kept:
        if (effect := measured(place, gains.get(place.column))) is not None:
            found.setdefault(place.data_set, []).append(effect)
    return Effect(
        row,
        {name: fmean(columns) for name, columns in found.items()},  # such as two probes
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
