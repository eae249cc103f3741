"""A table with what its selection chooses and what records say: one cell for each place.

Everything that shows a table reads this alone, so all of it is of one moment. A plan reads the
choices, anew each time, since its cells make records. Brings no torch.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import nested, reading
from contrastbench.benchmarks.records.experiment import ByData, Experiment
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.records.scored import copy_of
from contrastbench.benchmarks.records.store import FINAL_STATUSES, Record
from contrastbench.benchmarks.tables.schema import Row
from contrastbench.benchmarks.tables.scores import EVERY_TRIAL, Choice, Place, Scores
from contrastbench.benchmarks.tables.searches import Fixed
from contrastbench.benchmarks.tables.table import ON_TEST, Selection, Table
from contrastbench.errors import UserError, tell, unknown


@dataclass(frozen=True)
class ResolvedCell:
    """One place of a table that can be run here."""

    place: Place
    row: Row
    column: str
    same_as: str  # the row that has the same cells, as both losses are one by algebra; or ""
    choice: Choice
    experiments: list[Experiment]  # one, or those that its folds choose among
    trials: Sequence[Experiment] = ()  # those that choose
    ok: ByData = field(default_factory=dict)  # its records by data, those of its own data first
    failed: ByData = field(default_factory=dict)  # the failed run of each seed without an ok one

    @property
    def trial_seeds(self) -> Sequence[Sequence[int]]:
        return self.choice.tried_seeds or [self.place.setup.trial_seeds] * len(self.trials)

    @property
    def work(self) -> Experiment:
        """Return the experiment, or the first of those that are chosen among."""
        return self.experiments[0]

    @cached_property
    def records(self) -> dict[int, Record]:
        """Return the ok records by seed, all of one data."""
        return next(iter(self.ok.values()), {})

    @cached_property
    def failed_runs(self) -> dict[int, Record]:
        return self.failed.get(next(iter(self.ok or self.failed), ""), {})

    @property
    def has_run(self) -> bool:
        return bool(self.ok or self.failed)

    @cached_property
    def choices(self) -> list[tuple[dict[str, Any], int]]:
        """Return what folds chose, and how many of them, the most frequent first.

        The learning rate is among it where trials differ in it.
        """
        works = self.experiments
        several = len({work.recipe.get("lr") for work in works}) > 1
        rates = [{"lr": work.recipe["lr"]} if several else {} for work in works]
        counts = nested.frequencies(self.records.values())
        return [({**works[k].loss.params, **rates[k]}, count) for k, count in counts]

    @cached_property
    def diverged(self) -> list[int]:
        """Return the seeds on the place's data whose loss diverged.

        Other failures, such as too little memory, say nothing of a loss.
        """
        return [seed for seed, run in self.failed_runs.items() if run["status"] == "diverged"]

    @cached_property
    def failure(self) -> str:
        """Say how seeds on the place's data failed, such as diverged (2 of 5), or nothing."""
        if self.choice.why:
            return "diverged (every trial)" * (self.choice.why == EVERY_TRIAL)
        return nested.failures_text(list(self.failed_runs.values()), len(self.records))


@dataclass(frozen=True)
class Line:
    """A row of a resolved table, with its cells by column: those that can be run here."""

    row: Row
    name: str
    control: str  # the name of the control that the row is, or nothing
    cells: dict[str, ResolvedCell]

    @property
    def is_untrained(self) -> bool:
        """Return whether the row has no training: the untrained encoder or the raw input."""
        return any(not cell.work.trained for cell in self.cells.values())


@dataclass(frozen=True)
class Resolved:
    """A table whose parameters are chosen and whose records are read."""

    table: Table
    selection: Selection
    results: Path
    lines: list[Line]

    @cached_property
    def metrics(self) -> dict[str, str | None]:
        """Return the metric that each column shows; None: the domain's main one.

        Where parameters are chosen on validation data, nothing else is chosen on the test set.
        """
        named = {name: self.table.metric_of(name) for name in self.table.columns}
        if self.selection != Selection.VALIDATION:
            return named
        return {name: metric and metric.replace(ON_TEST, "") for name, metric in named.items()}

    @cached_property
    def cells(self) -> list[ResolvedCell]:
        return [cell for line in self.lines for cell in line.cells.values()]

    @property
    def has_run(self) -> bool:
        return any(cell.has_run for cell in self.cells)

    @property
    def on_test(self) -> list[str]:
        """Return the columns that show the best epoch of a classifier on the test set.

        Released codes report that; it is no honest number.
        """
        return [name for name, metric in self.metrics.items() if ON_TEST in (metric or "")]

    @property
    def copies(self) -> dict[tuple[str, str], list[str]]:
        """Return known copies of published data: what each is, its hash, and its columns."""
        copied = grouped(
            ((str(about), next(iter(cell.ok))), cell.column)
            for cell in self.cells
            for about in {copy_of(record) for record in cell.records.values()} - {None}
        )
        return {data: list(dict.fromkeys(columns)) for data, columns in copied.items()}

    @property
    def other_data(self) -> dict[str, list[str]]:
        """Return the rows with records of further data, which no number is of, by column."""
        return grouped((cell.column, cell.row.name) for cell in self.cells if len(cell.ok) > 1)

    @property
    def smoke_tests(self) -> Iterator[str]:
        """Yield a line on the results of a smoke test, where the table has no others."""
        cells = () if self.has_run else self.cells
        asked = ((c.place, one) for c in cells for one in (c.place.setting, *c.choice.tried))
        small = {}
        for place, one in asked:
            with suppress(UserError):  # a network that is never small has no smoke test
                work = place.smoke_test(one)
                small[work.key] = work
        if count := sum(1 for work in small.values() for _ in work.finished(self.results)):
            yield f"records of --tiny left out, as a smoke test fills no table: {count}"

    def where_from(self, name: str) -> Iterator[str]:
        """Yield a line on how to get records, where the table has none."""
        if self.cells and not self.has_run:
            yield (
                f"no records of {name} in {self.results}: bench sweep {name} makes them"
                + ", bench merge --shipped adds those that come with contrastbench" * self.ships
            )

    @property
    def ships(self) -> bool:
        works = (work for cell in self.cells for work in cell.experiments)
        return any(work.records(SHIPPED) for work in works)

    @property
    def edited(self) -> list[str]:
        """Return the rows that have no records but those of another text of their loss."""
        return [line.name for line in self.lines if self.was_edited(line)]

    def was_edited(self, line: Line) -> bool:
        if any(cell.has_run for cell in line.cells.values()):
            return False
        own = [work for cell in line.cells.values() if (work := cell.place.work).loss.code]
        return any(
            record["loss_code"] != work.loss.code and record["status"] in FINAL_STATUSES
            for work in own
            for _, record in reading.list_records(work.folder(self.results))
        )


def resolve(
    table: Table, selection: str | None, results: Path, metric: str | None = None
) -> Resolved:
    """Return the table as a selection and the records of a folder make it.

    Args:
        selection: paper or validation; None: the table's own.
        metric: what is shown in place of the table's own, without published values.
    """
    chosen = table.checked_selection(selection)
    lines = [resolved_line(table, row, chosen, results) for row in table.rows]
    if metric is not None:
        return resolve(shown_by(table, metric, lines), selection, results)
    return Resolved(table, chosen, results, lines)


def shown_by(table: Table, metric: str, lines: Iterable[Line]) -> Table:
    """Return the table by another metric, of the columns whose records all have it."""
    cells = (cell for line in lines for cell in line.cells.values())
    names = grouped((c.column, {*r["metrics"]}) for c in cells for r in c.records.values())
    shared = {name: set.intersection(*names[name]) for name in table.columns if name in names}
    kept = [column for column, some in shared.items() if metric in some]
    if not kept:
        raise unknown("metric", metric, sorted(set[str]().union(*shared.values())))
    if left_out := [column for column in shared if column not in kept]:
        tell(f"left out, since not all records have {metric}: {', '.join(left_out)}")
    return table.but(
        title=f"{table.title}, by {metric}",
        columns={name: table.columns[name].but(metric=metric) for name in kept},
        rows=[row.but(paper={}) for row in table.rows],
    )


def resolved_line(table: Table, row: Row, selection: Selection, results: Path) -> Line:
    places = (table.places.get((row.name, column)) for column in table.columns)
    decided = (decide(place, selection, results) for place in places if place)
    cells = {cell.column: with_records(table, cell, results) for cell in decided}
    return Line(row, row.name, row.control, cells)


def decide(
    place: Place, selection: Selection, results: Path, seeds: Sequence[int] = ()
) -> ResolvedCell:
    """Return a place with its settings, and none of its records yet; see `Scores` for the seeds."""
    search = place.search if selection == Selection.VALIDATION else Fixed(place.setting)
    choice = search.ask(Scores(place, results, seeds))
    tried = [place.experiment(setting) for setting in choice.tried]
    chosen = tried if choice.nested else [place.experiment(setting) for setting in choice.settings]
    about = place, place.row, place.setup.column, place.same_as
    return ResolvedCell(*about, choice, chosen, tried)


def with_records(table: Table, cell: ResolvedCell, results: Path) -> ResolvedCell:
    if cell.choice.why:
        return cell
    work, but = cell.experiments, {seed + cell.place.shift for seed in table.unshown_seeds}
    failed = cell.place.shown(nested.failed_by_data(work, results, but))
    if cell.choice.nested:
        ok = cell.place.combined_records(cell.choice, results, but)
    else:
        ok = cell.place.shown(work[0].ok_by_data(results, but))
    if table.is_suite:  # no loss is judged by more seeds than others
        shown = table.seeds_of(cell.column)
        ok, failed = (only_seeds(some, shown) for some in (ok, failed))
    return replace(cell, ok=ok, failed=failed)


def only_seeds(by_data: ByData, seeds: Container[int]) -> ByData:
    kept = {
        data: {seed: record for seed, record in records.items() if seed in seeds}
        for data, records in by_data.items()
    }
    return {data: records for data, records in kept.items() if records}


def lacking(
    cells: Iterable[ResolvedCell], shown: Callable[[list[str]], str] = ", ".join
) -> list[str]:
    """Return for each row the columns in which it has no result yet, and why."""
    reasons = ((cell, cell.choice.why or "not run" * (not cell.has_run)) for cell in cells)
    columns = grouped(((cell.row.name, why), cell.column) for cell, why in reasons if why)
    return [f"{row} on {shown(some)}: {why}" for (row, why), some in columns.items()]
