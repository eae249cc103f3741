"""What a comparison finds: all numbers and verdicts that words, tables and plots show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from contrastbench.benchmarks.comparison.effects import Effect, OverSets, too_few
from contrastbench.benchmarks.comparison.places import INCOMPLETE, NO_BASE, Comparison
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.comparison.statistics import deviation_factor
from contrastbench.benchmarks.tables.table import Table

FEW_SETS = 5  # data sets, up to which the controls are looked at set by set
ENOUGH_PAIRS = 5  # pairs, from which on a deviation is known to a factor of three


class RowCount(NamedTuple):
    """How many single data sets show a row so, of all that it is compared on."""

    row: str
    n: int
    places: Sequence[Comparison]


@dataclass(frozen=True)
class RowVerdict:
    """What is known of a row that was asked for."""

    row: str
    effect: Effect | None  # over data sets
    places: Sequence[Comparison]

    @property
    def incomplete(self) -> list[Comparison]:
        """Return the places where some seeds have not run."""
        return [one for one in self.places if one.why.startswith(INCOMPLETE)]

    @property
    def run(self) -> list[Comparison]:
        """Return the places whose seeds have all run, or that cannot run."""
        return [one for one in self.places if not one.why.startswith(INCOMPLETE)]


@dataclass(frozen=True)
class SingleSets:
    """What single data sets show of the losses: of those that joined only where all did."""

    places: Sequence[Comparison]
    tests: int  # in the families of these places

    @property
    def counted(self) -> int:
        """The tests that Holm's correction counts, run or not."""
        return max((one.family for one in self.places), default=self.tests)

    def rows(self, verdict: str) -> list[RowCount]:
        """Return the rows that some set shows so, the row with most such sets first."""
        found = [
            RowCount(row, count[verdict], [one for one in self.places if one.row == row])
            for row, count in verdict_counts(self.places).items()
            if count[verdict]
        ]
        return sorted(found, key=lambda one: -one.n)

    @property
    def diverged(self) -> list[str]:
        """The rows that diverged with some seeds of a set."""
        lost = (one.row for one in self.places if one.lost and one.verdict != "failed")
        return list(dict.fromkeys(lost))

    @property
    def base_diverged(self) -> dict[str, int]:
        """With how many seeds the baseline diverged, by column."""
        return {one.column: len(one.base_lost) for one in self.places if one.base_lost}

    @property
    def base_failed(self) -> list[str]:
        """The columns on which the baseline has failed."""
        failed = (one.column for one in self.places if one.why.startswith(NO_BASE))
        return list(dict.fromkeys(failed))


@dataclass(frozen=True)
class Tuning:
    """Rows that were not tuned as others were, by name."""

    beside: Sequence[str] = ()  # they have the settings that the baseline chose
    given: Sequence[str] = ()  # asked for, and they declare nothing to choose
    # losses that chose the baseline's loss on most sets: on how many, and on how many they have run
    alike: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    hardly: Sequence[str] = ()  # most of whose trials score alike

    @property
    def always_alike(self) -> bool:
        """Whether these losses chose the baseline's on all sets."""
        return all(n == of for n, of in self.alike.values())


@dataclass(frozen=True)
class Controls:
    """Whether the controls came out as they must, over data sets and, of few, set by set."""

    wrong: Mapping[str, Sequence[Effect]]  # that did not, by how they must come out
    counts: Counter[str]  # those that have a verdict, by how they must come out
    blind: Mapping[str, Sequence[str]]  # columns on which rows are no worse than the baseline
    below: Sequence[str]  # rows below it on each set, where nothing is judged over sets


def controls_of(over: OverSets, comparisons: Sequence[Comparison]) -> Controls:
    """Return how the controls of a comparison came out."""
    controls = [one for one in over.effects if one.control]
    judged = [one for one in controls if one.verdict != too_few(over.test)]
    wrong: dict[str, list[Effect]] = {}
    for one in judged:
        if not one.came_out:
            wrong.setdefault(one.must, []).append(one)
    worse = [one.row for one in controls if one.must == "worse"]
    seen = [one for one in comparisons if one.row in worse and one.difference is not None]
    blind: dict[str, list[str]] = {}
    for place in seen if not judged or over.sets <= FEW_SETS else ():
        if round(place.difference or 0.0, DIGITS) >= 0:
            blind.setdefault(place.column, []).append(place.row)
    below = worse if seen and not (judged or blind) else []
    return Controls(wrong, Counter(one.must for one in judged), blind, below)


@dataclass(frozen=True)
class Verdicts:
    """A table's rows against a baseline: place by place, over data sets, and what bears on it."""

    table: Table
    base: str
    places: list[Comparison]
    over: OverSets
    tuning: Tuning

    @property
    def speaks(self) -> bool:
        """Whether a loss can have a verdict over data sets."""
        return bool(self.over.contestants) and self.over.decides

    @property
    def asked(self) -> list[RowVerdict]:
        """What is known of the rows that were asked for."""
        over = self.over.contestants
        effects = {row: one for one in over for row in (one.row, *one.also)}
        return [
            RowVerdict(row, effects.get(row), [one for one in self.places if one.row == row])
            for row in self.table.asked
            if row != self.base
        ]

    @property
    def has_quick_part(self) -> bool:
        """Whether runs of a quick part may be there, which do not count."""
        return bool(self.table.quick) and not self.table.is_quick

    @cached_property
    def controls(self) -> Controls:
        """How the controls came out."""
        return controls_of(self.over, self.places)

    @cached_property
    def single_sets(self) -> SingleSets:
        """What single data sets show of the losses."""
        controls = {one.row for one in self.over.effects if one.control}
        losses = (one for one in self.places if not one.control)
        own = [one for one in losses if one.row not in controls] or self.places
        shown = [one for one in own if not one.joined] or own
        families = {one.family_name for one in shown}
        tested = (one for one in self.places if one.holm is not None)
        return SingleSets(shown, sum(one.family_name in families for one in tested))

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """The verdicts of each row on single data sets."""
        return verdict_counts(self.places)

    @property
    def few_seeds(self) -> tuple[int, float] | None:
        """The fewest pairs, and how many times their deviation the true one may be, if few."""
        pairs = [len(one.seeds) for one in self.places if len(one.seeds) > 1 and not one.control]
        fewest = min(pairs, default=ENOUGH_PAIRS)
        return (fewest, deviation_factor(fewest)) if fewest < ENOUGH_PAIRS else None


def verdict_counts(comparisons: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Verdicts of each row."""
    rows: dict[str, Counter[str]] = {}
    for comparison in comparisons:
        rows.setdefault(comparison.row, Counter())[comparison.verdict] += 1
    return rows
