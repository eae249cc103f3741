"""What a comparison finds: all numbers and verdicts that words, tables and plots show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from contrastbench.benchmarks.comparison import TOO_FEW, VERDICTS, Verdict
from contrastbench.benchmarks.comparison.over_sets import Effect, OverSets
from contrastbench.benchmarks.comparison.places import Comparison
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


class RowVerdict(NamedTuple):
    """What is known of a row that was asked for."""

    row: str
    effect: Effect | None  # over data sets
    places: Sequence[Comparison]


class SingleSets(NamedTuple):
    """What single data sets show of the losses: of those that joined only where all did."""

    places: Sequence[Comparison]
    tests: int  # in the families of these places
    counted: int  # the tests that Holm's correction counts, run or not
    rows: Mapping[str, Sequence[RowCount]]  # by verdict, the row with most such sets first
    diverged: Sequence[str]  # the rows that diverged with some seeds of a set
    base_diverged: Mapping[str, int]  # with how many seeds the baseline diverged, by column
    base_failed: Sequence[str]  # the columns on which the baseline has failed


class Controls(NamedTuple):
    """Whether the controls came out as they must, over data sets and, of few, set by set."""

    wrong: Mapping[str, Sequence[Effect]]  # that did not, by how they must come out
    counts: Counter[str]  # those that have a verdict, by how they must come out
    blind: Mapping[str, Sequence[str]]  # columns on which rows are no worse than the baseline
    below: Sequence[str]  # rows below it on each set, where nothing is judged over sets


@dataclass(frozen=True)
class Verdicts:
    """A table's rows against a baseline: place by place, over data sets, and what bears on it."""

    table: Table
    base: str
    places: Sequence[Comparison]
    over: OverSets
    beside: Sequence[str]  # rows at the settings that the baseline chose
    given: Sequence[str]  # rows that were asked for and declare nothing to choose
    speaks: bool  # a loss can have a verdict over data sets
    asked: Sequence[RowVerdict]  # what is known of the rows that were asked for
    controls: Controls
    single_sets: SingleSets
    counts: Mapping[str, Counter[str]]  # the verdicts of each row on single data sets
    # the fewest pairs, and how many times their deviation the true one may be, if they are few
    few_seeds: tuple[int, float] | None

    @property
    def found(self) -> list[Verdict]:
        """Return the verdicts that some row has on a single data set."""
        return [v for v in VERDICTS if any(count[v] for count in self.counts.values())]


def verdicts_of(
    table: Table,
    base: str,
    places: Sequence[Comparison],
    over: OverSets,
    beside: Sequence[str] = (),
    given: Sequence[str] = (),
) -> Verdicts:
    """Return what places and effects over data sets say together of a table's rows."""
    pairs = [len(place.seeds) for place in places if len(place.seeds) > 1 and not place.control]
    fewest = min(pairs, default=ENOUGH_PAIRS)
    effects = {row: effect for effect in over.contestants for row in (effect.row, *effect.also)}
    return Verdicts(
        *(table, base, places, over, beside, given),
        speaks=bool(over.contestants) and over.decides,
        asked=[
            RowVerdict(row, effects.get(row), [place for place in places if place.row == row])
            for row in table.asked
            if row != base
        ],
        controls=controls_of(over, places),
        single_sets=single_sets(over, places),
        counts=verdict_counts(places),
        few_seeds=(fewest, deviation_factor(fewest)) if fewest < ENOUGH_PAIRS else None,
    )


def controls_of(over: OverSets, comparisons: Sequence[Comparison]) -> Controls:
    """Return how the controls of a comparison came out."""
    controls = [effect for effect in over.effects if effect.must]
    judged = [effect for effect in controls if effect.verdict not in TOO_FEW]
    wrong: dict[str, list[Effect]] = {}
    for effect in judged:
        if not effect.came_out:
            wrong.setdefault(effect.must, []).append(effect)
    worse = [effect.row for effect in controls if effect.must == Verdict.WORSE]
    seen = [place for place in comparisons if place.row in worse and place.difference is not None]
    blind: dict[str, list[str]] = {}
    for place in seen if not judged or over.sets <= FEW_SETS else ():
        if round(place.difference or 0.0, DIGITS) >= 0:
            blind.setdefault(place.column, []).append(place.row)
    below = worse if seen and not (judged or blind) else []
    return Controls(wrong, Counter(effect.must for effect in judged), blind, below)


def single_sets(over: OverSets, comparisons: Sequence[Comparison]) -> SingleSets:
    """Return what single data sets show of the losses."""
    controls = {effect.row for effect in over.effects if effect.must}
    losses = (place for place in comparisons if not place.control)
    own = [place for place in losses if place.row not in controls] or comparisons
    shown = [place for place in own if not place.joined] or own
    families = {place.family_name for place in shown}
    tests = sum(place.holm is not None and place.family_name in families for place in comparisons)
    rows: dict[str, list[RowCount]] = {name: [] for name in VERDICTS}
    for row, count in verdict_counts(shown).items():
        for verdict, n in count.items():
            rows[verdict].append(RowCount(row, n, [place for place in shown if place.row == row]))
    lost = [place.row for place in shown if place.lost and place.verdict != Verdict.FAILED]
    return SingleSets(
        shown,
        tests,
        max((place.family for place in shown), default=tests),
        {name: sorted(some, key=lambda count: -count.n) for name, some in rows.items()},
        list(dict.fromkeys(lost)),
        {place.column: len(place.base_lost) for place in shown if place.base_lost},
        list(dict.fromkeys(place.column for place in shown if place.base_failed)),
    )


def verdict_counts(comparisons: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Verdicts of each row."""
    rows: dict[str, Counter[str]] = {}
    for comparison in comparisons:
        rows.setdefault(comparison.row, Counter())[comparison.verdict] += 1
    return rows
