"""Collect the report's contents: records by experiment, tables and comparisons as plain values."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from contrastbench.benchmarks.comparison.compare import Verdicts, compare
from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.nested import counting_run
from contrastbench.benchmarks.records.schema import STATUSES
from contrastbench.benchmarks.records.store import FINAL_STATUSES, Record, file_name
from contrastbench.benchmarks.report import figures
from contrastbench.benchmarks.report.words import paragraphs, said, sentences
from contrastbench.benchmarks.tables.audit import Coverage, coverage
from contrastbench.benchmarks.tables.entries import Entry, backs, digest, entries
from contrastbench.benchmarks.tables.resolved import Resolved, ResolvedCell, resolve
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import UserError

KEY_DIGITS = 16  # digits of a key that name a record's file
MAX_TOLD = 3  # settings in the heading of an experiment


@dataclass
class Group:
    """Records that differ in their seed only, tries that failed among them."""

    number: int  # its place among all groups
    folder: Path
    page: str  # of the report, which shows all groups of the data set
    records: list[Record] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def first(self) -> Record:
        return self.records[0]

    @property
    def anchor(self) -> str:
        return str(self.first["key"])[:KEY_DIGITS]

    @property
    def main(self) -> str:
        """Return the name of the main metric, or nothing where no seed is ok."""
        return next((record["main"] for record in self.records if "main" in record), "")

    @property
    def runs(self) -> list[tuple[Record, str]]:
        """Return the records with their paths by seed, each failed try before its success."""
        pairs = zip(self.records, self.paths, strict=True)
        return sorted(pairs, key=lambda pair: (pair[0]["seed"], pair[1]))

    @property
    def command(self) -> str:
        """Return the command that makes the first record with a result again, or nothing."""
        final = [path for record, path in self.runs if record["status"] in FINAL_STATUSES]
        return f"bench reproduce {Path(final[0]).stem}" if final else ""

    @property
    def made(self) -> str:
        environments = (record["environment"] for record in self.records)
        texts = (
            f"{e.get('device') or 'unknown device'}, {e.get('threads', '–')} threads, "
            f"{short_commit(e.get('commit'))}"
            for e in environments
        )
        return "; ".join(dict.fromkeys(texts))

    def outcomes(self) -> list[Record]:
        """Return one record for each seed; a later success replaces a failure."""
        by_seed = grouped((record["seed"], record) for record in self.records)
        return [counting_run(tries) for _, tries in sorted(by_seed.items())]

    def statuses(self) -> dict[str, int]:
        counts = Counter[str](record["status"] for record in self.outcomes())
        return {status: counts[status] for status in STATUSES if counts[status]}

    @property
    def without_number(self) -> int:
        return sum(record["status"] != "ok" for record in self.outcomes())

    @property
    def fastest(self) -> float:
        """Return the seconds of the fastest training; 0 where no record says."""
        about: list[Any] = [record.get("details", {}) for record in self.records]
        return min(filter(None, (one.get("seconds_training") for one in about)), default=0.0)

    def mean_std(self, tuning: Container[int]) -> tuple[float | None, float | None]:
        """Return mean and deviation of the main metric, without seeds that choose parameters."""
        ok = (r for r in self.records if r["status"] == "ok" and r["seed"] not in tuning)
        scores = [record["metrics"][record["main"]] for record in ok]
        return mean_std(scores) if scores else (None, None)


def titles(members: Sequence[Group]) -> list[tuple[str, str, Group]]:
    """Return the experiments of one loss on one data set.

    Each has the few settings in which it is least like the others, and then its other parameters
    with all that differs.
    """
    settings = [{**group.first["recipe"], **group.first["params"]} for group in members]
    names = dict.fromkeys(name for one in settings for name in one)
    alike = {name: Counter(str(one.get(name)) for one in settings) for name in names}
    varying = sorted((n for n in names if len(alike[n]) > 1), key=lambda n: -max(alike[n].values()))
    made = []
    for group, one in zip(members, settings, strict=True):
        own = [n for n in varying if alike[n][str(one.get(n))] <= len(members) / 2][:MAX_TOLD]
        rest = [n for n in dict.fromkeys((*varying, *group.first["params"])) if n not in own]
        title, others = (settings_line({n: one.get(n) for n in some}) for some in (own, rest))
        made.append((title, others, group))
    again = Counter(title for title, _, _ in made)
    return [
        ((title + f", key {group.anchor}" * (again[title] > 1)).removeprefix(", "), rest, group)
        for title, rest, group in made
    ]


def settings_line(values: Mapping[str, Any]) -> str:
    """Return settings in a line.

    >>> settings_line({"temperature": 0.5, "folds": 10})
    'temperature = 0.5, folds = 10'
    """
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def short_commit(commit: str | None) -> str:
    """Twelve digits, and whether files differed from it.

    >>> short_commit("0123456789abcdef+changes")
    '0123456789ab+changes'
    """
    if commit is None:
        return "no commit: an installed package"
    return commit[:12] + ("+changes" if commit.endswith("+changes") else "")


def read_groups(results: Path) -> list[Group]:
    """All records, every one checked against its checksum, by the key that they share."""
    groups: dict[str, Group] = {}
    for path, record in reading.all_records(results):
        page = "records/" + path.parent.parent.relative_to(results / "runs").as_posix()
        group = groups.setdefault(record["key"], Group(len(groups), path.parent, page))
        group.records.append(record)
        group.paths.append(path.relative_to(results).as_posix())
    if not groups:
        raise UserError(
            f"no records under {results / 'runs'}: bench run makes them, bench merge --shipped "
            "brings those that come with contrastbench, --results names another folder"
        )
    return list(groups.values())


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
    if cell.choice.why:
        return []
    return [
        group.number
        for group in by_folder.get(cell.work.folder(results), [])
        if any(work.matches(group.first) for work in cell.experiments)
        and next(iter(cell.ok), "") in ("", group.first["data_hash"])
    ]
