"""Compare a table with a baseline: all numbers and verdicts that words, tables and plots show."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from contrastbench.benchmarks.comparison.compare import (
    baseline_row,
    compare_rows,
    family_of,
    verdict_counts,
)
from contrastbench.benchmarks.comparison.controls import Controls, controls_of, over_sets_of
from contrastbench.benchmarks.comparison.effects import Effect, OverSets
from contrastbench.benchmarks.comparison.places import INCOMPLETE, NO_BASE, Comparison
from contrastbench.benchmarks.comparison.statistics import deviation_factor
from contrastbench.benchmarks.comparison.tuning import Tuning, tuning_of
from contrastbench.benchmarks.tables import origins
from contrastbench.benchmarks.tables.resolved import Resolved
from contrastbench.benchmarks.tables.table import Table

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
class Verdicts:
    """A table's rows against a baseline: place by place, over data sets, and what bears on it."""

    table: Table
    base: str
    places: list[Comparison]
    over: OverSets
    tuning: Tuning
    shipped: tuple[int, int]  # records that came with contrastbench, and all

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
        families = {family_of(one) for one in shown}
        tested = (one for one in self.places if one.holm is not None)
        return SingleSets(shown, sum(family_of(one) in families for one in tested))

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


def compare(resolved: Resolved, baseline: str | None = None, test: str | None = None) -> Verdicts:
    """Return all verdicts on a table's rows; without places where nothing can be compared.

    Without a test named, the table's own or the signed-rank test judges over data sets. The
    corrected t-test judges on single ones.

    Raises:
        UserError: no such row or test, or nothing in the table can be run.
    """
    places = compare_rows(resolved, baseline, test)
    base = baseline_row(resolved, baseline).name
    return Verdicts(
        resolved.table,
        base,
        places,
        over_sets_of(resolved, base, places, test),
        tuning_of(resolved, base),
        origins.shipped(resolved),
    )
