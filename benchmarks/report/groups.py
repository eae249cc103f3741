"""Read the records of each experiment over its seeds, as the report shows them."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.failures import counting_run
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.schema import STATUSES
from contrastbench.benchmarks.records.store import FINAL_STATUSES, Record
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
