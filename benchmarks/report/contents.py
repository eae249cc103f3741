"""What the report shows: tables, comparisons and records as plain values for the page."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.comparison import formats
from contrastbench.benchmarks.comparison.compare import (
    Comparison,
    Ranks,
    baseline_row,
    compare,
    counts,
    ranks,
)
from contrastbench.benchmarks.comparison.statistics import ALPHA, mean_std
from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables import catalogue, selections
from contrastbench.benchmarks.tables.entries import Entry, Value, entries
from contrastbench.benchmarks.tables.load import load
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses.errors import UserError

ORDER = ("ok", "diverged", "oom", "failed", "skipped")  # the best first
POINTS = 200  # of a curve: more cannot be told apart on a screen


@dataclass
class Group:
    """Records that differ in their seed only, tries that failed among them."""

    number: int  # its place in the page's data
    folder: Path
    records: list[Record] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def first(self) -> Record:
        """What all of them share can be read from any."""
        return self.records[0]

    def statuses(self, but: Sequence[int] = ()) -> Counter[str]:
        """How the seeds ended; a try that failed is forgotten where a later one did not."""
        worst_first = sorted(self.records, key=lambda record: -ORDER.index(record["status"]))
        by_seed = {
            record["seed"]: record["status"] for record in worst_first if record["seed"] not in but
        }
        return Counter(
            {
                status: list(by_seed.values()).count(status)
                for status in ORDER
                if status in by_seed.values()
            }
        )

    @property
    def scores(self) -> list[float]:
        """The main metric of each ok record."""
        return [
            record["metrics"][record["main"]] for record in self.records if record["status"] == "ok"
        ]


@dataclass(frozen=True)
class Filled:
    """One place of a table, and the groups that its records are in."""

    entry: Entry
    groups: list[int]
    statuses: Counter[str]  # of its seeds
    tuned: tuple[
        int, ...
    ] = ()  # seeds of the groups that are not its own: they chose the parameters
    why: str = ""  # there is nothing

    @property
    def best(self) -> Value | None:
        """What the place is sorted by: ours, or the paper's where there is none of ours."""
        return self.entry.ours or self.entry.paper


@dataclass(frozen=True)
class Shown:
    """A table with all that is said of it."""

    table: Table  # with the parameters of its selection
    lines: list[list[Filled]]
    baseline: str | None
    compared: list[Comparison]
    legend: str
    counts: dict[str, Counter[str]]
    ranks: Ranks | None

    @property
    def name(self) -> str:
        """The table's, which may be there again with parameters that validation data chose."""
        return self.table.name + (
            ", validation selection" if self.table.selection.startswith("validation") else ""
        )


def read_groups(results: Path) -> list[Group]:
    """All records, every one checked against its checksum, by the key that they share.

    Raises:
        UserError: there is none, or one was edited by hand.
    """
    groups: dict[str, Group] = {}
    for path, record in reading.everything(results):
        group = groups.setdefault(record["key"], Group(len(groups), path.parent))
        group.records.append(record)
        group.paths.append(path.relative_to(results).as_posix())
    if not groups:
        raise UserError(
            f"no records under {results / 'runs'}: bench run makes them, --results names another "
            "folder"
        )
    return list(groups.values())


def show(table: Table, results: Path, groups: Sequence[Group]) -> Shown:
    """A table beside the records, with its comparisons and ranks."""
    by_folder = defaultdict(list)
    for group in groups:
        by_folder[group.folder].append(group)
    filled = list(entries(table, results))
    lines = [[place(table, entry, results, by_folder) for entry in line] for line in filled]
    if not any(entry.run for line in filled for entry in line):
        return Shown(table, lines, None, [], "", {}, None)
    found = compare(table, results)
    base = baseline_row(table).name
    legend = formats.legend(found, "t", ALPHA) if found else ""
    return Shown(
        table,
        lines,
        base,
        found,
        legend,
        counts(found),
        ranks(table, filled),
    )


def place(table: Table, entry: Entry, results: Path, by_folder: dict[Path, list[Group]]) -> Filled:
    """Where the entry's numbers come from; an average comes from the places beside it."""
    if not entry.run or entry.column not in table.columns:
        return Filled(entry, [], Counter())
    if entry.column in entry.row.undecided:
        return Filled(entry, [], Counter(), why=entry.row.undecided[entry.column])
    work = table.experiments(entry.row, entry.column)
    found = [
        group
        for group in by_folder.get(work[0].folder(results), [])
        if any(one.matches(group.first) for one in work)
        and entry.data in ("", group.first["data_hash"])
    ]
    statuses = sum((group.statuses(table.tuning_seeds) for group in found), Counter())
    return Filled(entry, [group.number for group in found], statuses, table.tuning_seeds)


def choose(names: Sequence[str], results: Path, groups: Sequence[Group]) -> list[Shown]:
    """The named tables, or every one that has a record.

    Under both selections where both have records.
    """
    loaded = [load(name) for name in names or catalogue.names()]
    shown = [
        (show(table, results, groups), first)
        for one in loaded
        for table, first in variants(one, results)
    ]
    return [
        one
        for one, first in shown
        if (names and first) or any(place.groups for line in one.lines for place in line)
    ]


def variants(table: Table, results: Path) -> Iterator[tuple[Table, bool]]:
    """The table by its own selection, and by validation data where rows have grids."""
    yield selections.resolve(table, None, results), True
    if selections.default(table) == "paper" and any(
        row.grid or row.grid_by_column for row in table.rows
    ):
        yield selections.resolve(table, "validation", results), False


def related(shown: Iterable[Shown], groups: Sequence[Group]) -> set[int]:
    """Groups of the tables, and those of the same losses on the same data with other parameters."""
    used = {
        number for one in shown for line in one.lines for place in line for number in place.groups
    }
    folders = {groups[number].folder for number in used}
    return {group.number for group in groups if group.folder in folders}


def data(groups: Sequence[Group]) -> dict[str, Any]:
    """The page's data: what records of a group share is said once, and so is each environment."""
    environments: list[dict[str, Any]] = []
    listed = [as_data(group, environments) for group in groups]
    return {"groups": listed, "environments": environments}


def as_data(group: Group, environments: list[dict[str, Any]]) -> dict[str, Any]:
    """A group for the page."""
    shared = ("domain", "dataset", "loss", "params", "recipe", "protocol", "data_hash", "key")
    mean, std = mean_std(group.scores) if group.scores else (None, None)
    return {
        **{name: group.first[name] for name in shared},
        "number": group.number,
        "main": next((record["main"] for record in group.records if "main" in record), None),
        "mean": mean,
        "std": std,
        "n": len(group.scores),
        "statuses": list(group.statuses().items()),
        "runs": sorted(
            (run(*pair, environments) for pair in zip(group.records, group.paths, strict=True)),
            key=by_seed,
        ),
    }


def by_seed(run: dict[str, Any]) -> tuple[int, str]:
    """Seed 2 before seed 10."""
    return run["seed"], run["path"]


def run(record: Record, path: str, environments: list[dict[str, Any]]) -> dict[str, Any]:
    """A record for the page."""
    if record["environment"] not in environments:
        environments.append(record["environment"])
    details = record["details"]
    return {
        "seed": record["seed"],
        "status": record["status"],
        "metrics": {name: rounded(value) for name, value in record.get("metrics", {}).items()},
        "seconds": rounded(record.get("seconds")),
        "memory": rounded(record.get("peak_memory_mib")),
        "environment": environments.index(record["environment"]),
        "path": path,
        "error": details.get("error"),
        "loss": thinned(list(enumerate(details.get("loss_by_epoch", []), start=1))),
        "dev": thinned(details.get("dev_curve", [])),
    }


def thinned(points: Sequence[Sequence[float]]) -> list[list[float | None]]:
    """At most POINTS of them and the last, in five digits."""
    step = max(1, -(-len(points) // POINTS))
    kept = [*points[:-1:step], *points[-1:]]
    return [[x, rounded(y)] for x, y in kept]


def rounded(value: float | None) -> float | None:
    """Five significant digits.

    >>> rounded(87.77777777)
    87.778
    """
    return None if value is None else float(f"{value:.5g}")
