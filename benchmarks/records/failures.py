"""Failed cells: where a loss diverges on a dataset, its cell has failed and is not missing."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from contrastbench.benchmarks.records.experiment import ByData, Experiment, ordered_by_data
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.schema import STATUSES
from contrastbench.benchmarks.records.store import Record


def counting_run(records: Sequence[Record]) -> Record:
    """Return a seed's run that counts: a later success replaces a failure."""
    return min(records, key=lambda record: STATUSES.index(record["status"]))


def failed_by_data(trials: Sequence[Experiment], results: Path, but: Container[int] = ()) -> ByData:
    """Return the best failed run of each seed that every trial tried without success."""
    tried = [by_place(trial.records(results)) for trial in trials]
    failed: ByData = {}
    for data_hash, seed in sorted(set(tried[0]).intersection(*tried)):
        record = counting_run([run for places in tried for run in places[data_hash, seed]])
        if record["status"] != "ok" and seed not in but:
            failed.setdefault(data_hash, {})[seed] = record
    return ordered_by_data(failed)


def tried_by_all(trials: Sequence[Experiment], results: Path) -> set[tuple[str, int]]:
    """Return the data and seeds that every trial has a record of, with a result or without one."""
    return set.intersection(*(set(by_place(trial.records(results))) for trial in trials))


def by_place(records: Iterable[Record]) -> dict[tuple[str, int], list[Record]]:
    """Group records by data and seed."""
    return grouped(((record["data_hash"], record["seed"]), record) for record in records)


def failures_text(failed: Sequence[Record], ok: int) -> str:
    """Return in words how many seeds ended in which way.

    >>> failures_text([{"status": "diverged"}, {"status": "diverged"}], ok=3)
    'diverged (2 of 5)'
    """
    counts = Counter[str](record["status"] for record in failed)
    shown = [name for name in STATUSES if counts[name]]
    return ", ".join(f"{name} ({counts[name]} of {len(failed) + ok})" for name in shown)
