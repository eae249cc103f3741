"""Records of one experiment over its seeds, and what of them goes into the page."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.failures import ORDER, best
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

POINTS = 200  # of a curve: more cannot be told apart on a screen


@dataclass
class Group:
    """Records that differ in their seed only, tries that failed among them."""

    number: int  # its place in the page's data
    folder: Path
    records: list[Record] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    # seeds that choose parameters, so are no results; of a group in no table the usual ones
    tuning: set[int] = field(default_factory=lambda: set(Tune().seeds))

    @property
    def first(self) -> Record:
        """Return one record of the group, from which shared values can be read."""
        return self.records[0]

    def outcomes(self) -> list[Record]:
        """Return one record for each seed; a later success replaces a failure."""
        by_seed = defaultdict(list)
        for record in self.records:
            by_seed[record["seed"]].append(record)
        return [best(tries) for _, tries in sorted(by_seed.items())]

    def statuses(self) -> dict[str, int]:
        """Count the seeds by status, the best status first."""
        found = Counter(record["status"] for record in self.outcomes())
        return {status: found[status] for status in ORDER if found[status]}

    def scores(self, tuning: bool = False) -> list[float]:
        """The main metric of each ok record, of seeds that choose parameters or of the others."""
        return [
            record["metrics"][record["main"]]
            for record in self.records
            if record["status"] == "ok" and (record["seed"] in self.tuning) == tuning
        ]


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
            f"no records under {results / 'runs'}: bench run makes them, bench merge --shipped "
            "brings those that come with contrastbench, --results names another folder"
        )
    return list(groups.values())


@dataclass(frozen=True)
class Failure:
    """Seeds of an experiment that ended alike, without a number."""

    title: str
    status: str
    seeds: list[int]
    error: str


def failures(groups: Iterable[Group]) -> list[Failure]:
    """Return the groups that were tried and have no number."""
    found: dict[tuple[str, str, str, int], list[int]] = {}
    for group in groups:
        for record in group.outcomes():
            if record["status"] != "ok":
                loss = LossSpec(record["loss"], record["params"]).label
                title = f"{record['domain']} {record['dataset']} {loss}"
                error = record["details"].get("error", "")
                what = (title, record["status"], error, group.number)  # recipes may differ
                found.setdefault(what, []).append(record["seed"])
    return [Failure(title, status, s, error) for (title, status, error, _), s in found.items()]


def data(groups: Sequence[Group]) -> dict[str, Any]:
    """The page's data: what records of a group share is said once, and so is each environment."""
    environments: list[dict[str, Any]] = []
    listed = [as_data(group, environments) for group in groups]
    return {"groups": listed, "environments": environments}


def as_data(group: Group, environments: list[dict[str, Any]]) -> dict[str, Any]:
    """A group for the page."""
    shared = ("domain", "dataset", "loss", "params", "recipe", "protocol", "data_hash", "key")
    scores = group.scores()
    mean, std = mean_std(scores) if scores else (None, None)
    return {
        **{name: group.first[name] for name in shared},
        "number": group.number,
        "main": next((record["main"] for record in group.records if "main" in record), None),
        "mean": mean,
        "std": std,
        "n": len(scores),
        "tuning": sorted(group.tuning & {record["seed"] for record in group.records}),
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
    """Round a value to five significant digits.

    >>> rounded(87.77777777)
    87.778
    """
    return None if value is None else float(f"{value:.5g}")
