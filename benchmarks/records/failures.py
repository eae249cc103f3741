"""Cells that gave no number: a loss that diverges on a set has failed there, it is not missing."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from contrastbench.benchmarks.records.experiment import (
    ByData,
    Experiment,
    in_order,
    records_of,
)
from contrastbench.benchmarks.records.schema import STATUSES
from contrastbench.benchmarks.records.store import Record

ORDER = STATUSES  # what a seed came to: the best of its tries


def best(records: Sequence[Record]) -> Record:
    """The try that counts: a failure is forgotten where a later try went well."""
    return min(records, key=lambda record: ORDER.index(record["status"]))


def failed_by_data(trials: Sequence[Experiment], results: Path, but: Container[int] = ()) -> ByData:
    """Seeds that every trial has tried and none has a number of, with the best of their tries.

    Args:
        trials: one experiment, or those that its folds choose among.
        results: the folder that holds runs/.
        but: seeds that are left out.
    """
    records = records_of(trials, results)
    tried = [by_place(filter(trial.matches, records)) for trial in trials]
    failed: ByData = {}
    for data_hash, seed in sorted(set(tried[0]).intersection(*tried)):
        record = best([one for places in tried for one in places[data_hash, seed]])
        if record["status"] != "ok" and seed not in but:
            failed.setdefault(data_hash, {})[seed] = record
    return in_order(failed)


def by_place(records: Iterable[Record]) -> dict[tuple[str, int], list[Record]]:
    """Records by their data and seed."""
    places: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        places.setdefault((record["data_hash"], record["seed"]), []).append(record)
    return places


def in_words(failed: Sequence[Record], ok: int) -> str:
    """How many of the seeds ended how.

    >>> in_words([{"status": "diverged"}, {"status": "diverged"}], ok=3)
    'diverged (2 of 5)'
    """
    counts = Counter(record["status"] for record in failed)
    shown = [name for name in ORDER if counts[name]]
    return ", ".join(f"{name} ({counts[name]} of {len(failed) + ok})" for name in shown)
