"""Collect the report's contents: tables and comparisons as plain values for the page."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from contrastbench.benchmarks.comparison.compare import Verdicts, compare
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.store import file_name
from contrastbench.benchmarks.report import figures
from contrastbench.benchmarks.report.groups import Group
from contrastbench.benchmarks.report.words import paragraphs, said, sentences
from contrastbench.benchmarks.tables.audit import Coverage, coverage
from contrastbench.benchmarks.tables.entries import Entry, backs, digest, entries
from contrastbench.benchmarks.tables.resolved import Resolved, ResolvedCell, resolve
from contrastbench.benchmarks.tables.table import Table


@dataclass(frozen=True)
class TableView:
    """A table with its verdicts and what stands beside them."""

    resolved: Resolved
    entries: list[list[Entry]]
    verdicts: Verdicts | None = None  # None: nothing of it can be compared
    page: str = ""  # of the report
    behind: Mapping[tuple[str, str], list[int]] = field(default_factory=dict)  # groups of records

    @property
    def table(self) -> Table:
        return self.resolved.table

    @cached_property
    def coverage(self) -> Coverage:
        return coverage(self.resolved)

    @property
    def backs(self) -> list[Entry]:
        return backs(self.entries, self.table.name)

    @property
    def answer(self) -> str:
        """Return what came back, or else the verdicts, in one sentence."""
        nothing = "None of {0.values} values was run here yet; {0.runnable} can be run."
        known = " ".join(self.said("back_line")) or self.standing
        return " ".join([*self.table.remarks, known or nothing.format(self.coverage)])

    @cached_property
    def standing(self) -> str:
        return " ".join(said(self.verdicts, "headline")) if self.verdicts else ""

    @cached_property
    def effects(self) -> figures.Figure | None:
        """Return the picture of effects over data sets, or of differences on few."""
        v = self.verdicts
        return (figures.effects_figure(v) or figures.differences_figure(v)) if v else None

    @cached_property
    def figure(self) -> figures.Figure | None:
        """Return the picture of the table: theirs beside ours, or effects, or differences."""
        return figures.printed_figure(self.entries, self.table.decimals) or self.effects

    def said(self, part: str) -> list[str]:
        """Return what a macro of tables.j2 says, such as label, a line each."""
        about = {"r": self.resolved, "backs": self.backs, "digest": digest(self.entries)}
        return paragraphs(str(getattr(sentences(**about), part)()))


def costs(shown: TableView, groups: Sequence[Group]) -> dict[str, float]:
    """Return how long each row trains, over the baseline's time: the median over its columns.

    A place has its fastest record, as others may have shared their machine.
    """
    seconds = {
        place: min(found)
        for place, numbers in shown.behind.items()
        if (found := [s for number in numbers if (s := groups[number].fastest)])
    }
    base = shown.verdicts.base if shown.verdicts else ""
    there = ((row, own, seconds.get((base, column))) for (row, column), own in seconds.items())
    ratios = grouped((row, own / theirs) for row, own, theirs in there if theirs)
    return {row: median(some) for row, some in ratios.items()}


def table_views(
    tables: Iterable[Table], results: Path, groups: Sequence[Group]
) -> Iterator[TableView]:
    """Yield the tables as a report shows them; two tables of one name have two pages."""
    by_folder = grouped((group.folder, group) for group in groups)
    seen = Counter[str]()
    for table in tables:
        resolved, name = resolve(table, None, results), file_name(table.name)
        seen[one := name.casefold()] += 1  # some systems take two files of such names for one
        again = f"-{seen[one]}" * (seen[one] > 1)
        behind = {
            (cell.row.name, cell.column): groups_behind(cell, results, by_folder)
            for cell in resolved.cells
        }
        yield replace(view_of(resolved), page=f"tables/{name}{again}", behind=behind)


def view_of(resolved: Resolved) -> TableView:
    """Return a table with its verdicts, if anything of it can be compared."""
    lines = list(entries(resolved))
    verdicts = compare(resolved) if any(e.ours for line in lines for e in line) else None
    return TableView(resolved, lines, verdicts if verdicts and verdicts.places else None)


def groups_behind(
    cell: ResolvedCell, results: Path, by_folder: Mapping[Path, list[Group]]
) -> list[int]:
    """Return the numbers of the groups of records of a place."""
    if cell.choice.why:
        return []
    return [
        group.number
        for group in by_folder.get(cell.work.folder(results), [])
        if any(work.matches(group.first) for work in cell.experiments)
        and next(iter(cell.ok), "") in ("", group.first["data_hash"])
    ]
