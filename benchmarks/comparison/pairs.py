"""Compare one row with the baseline in one column, by paired tests over shared seeds and folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import sqrt
from statistics import fmean

from contrastbench.benchmarks.comparison import Verdict, statistics
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.records.experiment import ByData
from contrastbench.benchmarks.records.scored import folds_of, scored_data, scored_parts
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.entries import shown_value
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.scores import EVERY_TRIAL
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import plural

UNTESTED = statistics.PValue(None)
Pair = tuple[Record, Record]  # of the baseline and of the row
SetName = tuple[str, str]  # domain and data set: columns of equal data are no two


@dataclass(frozen=True)
class Comparison:
    """One row against the baseline in one column."""

    row: str
    column: str
    domain: str
    dataset: str = ""
    seeds: tuple[int, ...] = ()  # that both have
    unpaired: int = 0  # seeds that only one has
    baseline: float | None = None  # means over shared seeds
    ours: float | None = None
    difference: float | None = None
    differences: tuple[float, ...] = ()  # with each seed
    std: float | None = None  # of the difference over seeds, ddof 1
    n: int = 0  # differences of the t-test: folds of all seeds, or seeds
    ratio: float = 0.0
    spread: float | None = None  # standard deviation of these differences, ddof 1
    family: int = 1  # tests that Holm's correction counts
    t: statistics.PValue = UNTESTED
    holm: float | None = None
    verdict: Verdict = Verdict.UNTESTED
    why: str = ""  # it is untested
    same: bool = False  # the row is the baseline itself here
    incomplete: str = ""  # how many seeds have run, of more
    failure: str = ""  # how seeds of the row failed; failed: all of them
    lost: tuple[int, ...] = ()  # seeds of the baseline with which the row's loss has diverged
    base_lost: tuple[int, ...] = ()  # seeds of the row with which the baseline has diverged
    control: str = ""  # the name of the control that the row is
    same_as: str = ""  # the row whose loss this is by algebra, so that both have the same cells
    joined: bool = False  # the row joined by `--loss`: the sweep does not list it
    runs: frozenset[tuple[int, str]] = frozenset()  # the records behind each seed
    waiting: bool = False  # the row lacks results in a column where it is a loss of its own

    @cached_property
    def data_set(self) -> SetName:
        return self.domain, self.dataset

    @cached_property
    def has_failed(self) -> bool:
        """Return whether a training of the row has failed, with which the baseline did not."""
        return self.verdict == Verdict.FAILED or bool(self.lost)

    @property
    def is_final(self) -> bool:
        """Return whether the place has no test for good: a copy, a failure, or no such data."""
        return bool(self.why or self.failure) and not self.incomplete

    @property
    def detectable(self) -> float | None:
        """Return the smallest true difference that the t-test finds four times in five.

        That is at the first step of Holm's correction. The t statistic of a true difference is a
        noncentral t, whose noncentrality is the difference in standard errors. Power takes longer
        than all tests together, so it is computed where it is shown.
        """
        if not self.spread or self.difference is None:
            return None
        shift = statistics.noncentrality(self.n - 1, ALPHA / self.family)
        return shift * self.spread * sqrt(1 / self.n + self.ratio)

    @property
    def half_width(self) -> float | None:
        """Return half of the interval around the difference that the t-test does not reject."""
        if not self.spread:
            return None
        t = statistics.critical(self.n - 1, ALPHA)
        return t * self.spread * sqrt(1 / self.n + self.ratio)


def compare_cell(resolved: Resolved, base: Line, line: Line, column: str) -> Comparison:
    their, ours = base.cells[column], line.cells[column]
    theirs, mine = on_shared_data(their.ok, ours.ok)
    comparison = without_scores(resolved, base, line, column, theirs, mine)
    if missing := unfinished_seeds(resolved.table, their, ours):
        return replace(comparison, why=f"incomplete: {missing}", incomplete=missing)
    if not comparison.seeds:
        return without_pairs(comparison, their, ours)
    if comparison.same_as == base.name:
        return replace(comparison, why=f"the same as {base.name} by algebra", same=True)
    pairs = [(theirs[seed], mine[seed]) for seed in comparison.seeds]
    if runs_behind(theirs) == comparison.runs:
        # a search may end at the baseline itself: a difference of 0 by construction
        searched = resolved.table.sweep and resolved.table.tune
        shown = with_means(resolved, comparison, pairs) if searched else comparison
        return replace(shown, why="the same runs", same=True)
    metrics = {resolved.metrics[column] or one["main"] for pair in pairs for one in pair}
    if len(metrics) > 1:
        return replace(comparison, why=f"other metrics: {', '.join(sorted(metrics))}")
    comparison = with_means(resolved, comparison, pairs)
    if any(scored_data(a) != scored_data(b) for a, b in pairs):
        return replace(comparison, why="other data or starting weights")
    return with_tests(comparison, pairs, *metrics)


def without_scores(
    resolved: Resolved,
    base: Line,
    line: Line,
    column: str,
    theirs: Mapping[int, Record],
    mine: Mapping[int, Record],
) -> Comparison:
    """Return which seeds of a place can be compared, and what failed or is the same loss."""
    ours = line.cells[column]
    lost = theirs if ours.choice.why == EVERY_TRIAL else theirs.keys() & {*ours.diverged}
    original = {row.name: row.cells[column].same_as or row.name for row in (base, line)}
    same_loss = original[base.name] == original[line.name]
    return Comparison(
        *(line.name, column, ours.work.domain, ours.work.dataset),
        tuple(sorted(mine.keys() & theirs.keys())),
        len(mine.keys() ^ theirs.keys()),
        failure=ours.failure,
        lost=tuple(sorted(lost)),
        base_lost=tuple(sorted(mine.keys() & {*base.cells[column].diverged})),
        control=line.control,
        same_as=base.name if same_loss else ours.same_as,
        joined=line.name in resolved.table.joined,
        runs=runs_behind(mine),
    )


def unfinished_seeds(table: Table, base: ResolvedCell, ours: ResolvedCell) -> str:
    """Return how many seeds a row or the baseline has, where a suite asks for more.

    Some seeds may be those of its quick part, which is never mixed with the whole.
    """
    if not (table.is_suite and base.has_run and ours.has_run):
        return ""
    seeds = {*table.seeds_of(ours.column)}
    run = ({*cell.records, *cell.failed_runs} & seeds for cell in (ours, base))
    own, theirs = map(len, run)
    least, asked = min(own, theirs), len(seeds)
    whose = "the baseline has " * (theirs < own)
    return f"{whose}{least} of {asked} seed{plural(asked)}" if least < asked else ""


def without_pairs(comparison: Comparison, base: ResolvedCell, ours: ResolvedCell) -> Comparison:
    failed = ours.failure and not ours.ok
    if base.failure and not base.ok and (failed or ours.ok):
        comparison = replace(comparison, why=f"the baseline {base.failure}")
    return replace(comparison, verdict=Verdict.FAILED) if failed else comparison


def on_shared_data(theirs: ByData, mine: ByData) -> tuple[dict[int, Record], dict[int, Record]]:
    """Return both rows' records by seed, on the first shared data or on each row's own.

    Without such, the first data that score both: an untrained encoder has seen no corpus.
    """
    for data_hash, records in mine.items():
        if data_hash in theirs:
            return theirs[data_hash], records
    scored_on: dict[str, dict[int, Record]] = {}
    for records in theirs.values():
        scored_on.setdefault(scored_data(next(iter(records.values()))), records)
    for records in mine.values():
        if shared := scored_on.get(scored_data(next(iter(records.values())))):
            return shared, records
    return next(iter(theirs.values()), {}), next(iter(mine.values()), {})


def runs_behind(records: Mapping[int, Record]) -> frozenset[tuple[int, str]]:
    """Return the keys of the records behind the number of each seed, whose own may be shifted."""
    return frozenset(
        (record["seed"], str(key))
        for record in records.values()
        for key in record["details"].get("keys", [record["key"]])
    )


def with_means(resolved: Resolved, comparison: Comparison, pairs: Sequence[Pair]) -> Comparison:
    show = partial(shown_value, resolved, comparison.column)
    values = [(show(theirs), show(mine)) for theirs, mine in pairs]
    baseline, ours = (fmean(column) for column in zip(*values, strict=True))
    differences = [b - a for a, b in values]
    difference, std = statistics.mean_std(differences)
    found = replace(comparison, baseline=baseline, ours=ours, difference=difference, std=std)
    return replace(found, differences=tuple(differences))


def with_tests(comparison: Comparison, pairs: list[Pair], metric: str) -> Comparison:
    """Add the test over seeds and folds to a comparison.

    Folds of one seed are the same samples for every loss, those of two seeds are not. One
    seed has no p, however many folds: they share its training.
    """
    by_seed = [b["metrics"][metric] - a["metrics"][metric] for a, b in pairs]
    by_fold = [differences_by_fold(a, b, metric) for a, b in pairs]
    splits, ratio = by_seed, redrawn(pairs[0][0])
    if len(pairs) > 1 and all(by_fold):
        splits, ratio = [d for folds in by_fold for d in folds], 1 / (len(by_fold[0]) - 1)
    _, spread = statistics.mean_std(splits)
    tested = statistics.corrected_t(splits, ratio)
    return replace(comparison, n=len(splits), ratio=ratio, spread=spread, t=tested)


def differences_by_fold(a: Record, b: Record, metric: str) -> list[float]:
    """Return differences on folds that both share; none of a metric that is no mean over such."""
    same = all(a["recipe"].get(key) == b["recipe"].get(key) for key in ("folds", "limit"))
    theirs, ours = folds_of(a, metric), folds_of(b, metric)
    if not same or len(theirs) != len(ours):
        return []
    return [y - x for x, y in zip(theirs, ours, strict=True)]


def redrawn(record: Record) -> float:
    """Return the test part's size over the training part's if each seed draws them, or 0."""
    about = scored_parts(record)
    return about.samples["test"] / about.samples["train"] if about.test_part == "redrawn" else 0.0
