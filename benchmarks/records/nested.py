"""What the trials of a place give together: a choice by each fold, or seeds that failed with all.

In a nested selection each fold is scored at the setting that its own training part ranks first.

Where folds turn, every sample is in some training part, so one choice for all folds has seen what
it is scored on. So each outer fold of each seed chooses by its own inner scores, of equal ones the
earlier setting, and never one that diverged. The number of a seed is the mean over its folds.
Brings no torch.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from math import inf
from pathlib import Path
from statistics import fmean, pstdev
from typing import cast

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import ByData, Experiment, by_data
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.schema import STATUSES
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.benchmarks.records.store import Record
from contrastbench.errors import UserError

KEPT = ("data", "scored_data")  # details that all settings share


def chosen_by_data(
    trials: Sequence[Experiment],
    results: Path,
    but: Container[int] = (),
    only: Container[int] | None = None,
) -> ByData:
    """Combine settings into one record per seed, for seeds that have finished with all of them.

    Args:
        trials: an experiment for each setting, on one dataset.
        but: seeds that are left out.
        only: the seeds that count; None: all others.
    """
    runs = [trial.finished_cells(results) for trial in trials]
    shared = sorted(set(runs[0]).intersection(*runs))
    wanted = [cell for cell in shared if cell[1] not in but and (only is None or cell[1] in only)]
    found = {cell: of_folds([run[cell] for run in runs]) for cell in wanted}
    return by_data({cell: record for cell, record in found.items() if record})


def of_folds(records: Sequence[Record]) -> Record | None:
    """Combine the settings of one seed, each fold with the one that it chooses; None: all diverged.

    Its seconds are what choosing costs.
    """
    inner = [inner_scores(record) if record["status"] == "ok" else () for record in records]
    if not any(inner):
        return None
    best = best_by_fold(inner)
    folds = [scored_parts(records[k]).folds[i] for i, k in enumerate(best)]
    first, mean = records[best[0]], fmean(folds)
    about, main = scored_parts(first), first["main"]
    memory = (record.get("peak_memory_mib") for record in records if record["status"] == "ok")
    made = {
        **first,
        "params": {},
        "metrics": {main: mean, f"{main}_std_over_folds": pstdev(folds, mean)},
        "details": {
            **{key: value for key, value in first["details"].items() if key in KEPT},
            "folds": folds,
            "inner": [inner[k][i] for i, k in enumerate(best)],
            "samples": about.samples,
            "test_part": about.test_part,
            "chosen": best,
            "keys": [records[k]["key"] for k in best],
        },
        "seconds": sum(record.get("seconds") or 0.0 for record in records),
        "peak_memory_mib": max(filter(None, memory), default=None),
    }
    return cast(Record, made)


def inner_scores(record: Record) -> Sequence[float]:
    about = scored_parts(record)
    if not about.folds or len(about.inner) != len(about.folds):
        raise UserError(
            f"{record['key'][:16]}-seed{record['seed']} has no inner scores, by which each fold "
            "chooses: remove this record, and a sweep runs its cell anew"
        )
    return about.inner


def best_by_fold(inner: Sequence[Sequence[float]]) -> list[int]:
    """Return for each fold the setting with the best inner score; diverged ones have none.

    >>> best_by_fold([[70.0, 80.0], [75.0, 80.0], []])
    [1, 0]
    """
    folds, settings = range(max(map(len, inner))), range(len(inner))
    return [max(settings, key=lambda k: inner[k][i] if inner[k] else -inf) for i in folds]


def frequencies(records: Iterable[Record]) -> list[tuple[int, int]]:
    """Count how often folds chose which setting, by its place, the most frequent first."""
    return Counter(k for record in records for k in record["details"]["chosen"]).most_common()


def counting_run(records: Sequence[Record]) -> Record:
    """Return a seed's run that counts: a later success replaces a failure."""
    return min(records, key=lambda record: STATUSES.index(record["status"]))


def failed_by_data(trials: Sequence[Experiment], results: Path, but: Container[int] = ()) -> ByData:
    """Return the best failed run of each seed that every trial tried without success."""
    cells = tried_by_all(trials, results)
    runs = ((store.cell_of(run), run) for trial in trials for run in trial.records(results))
    found = grouped((cell, run) for cell, run in runs if cell in cells)
    best = {cell: counting_run(some) for cell, some in found.items()}
    return by_data({cell: run for cell, run in best.items() if run["status"] != "ok"}, but)


def tried_by_all(trials: Sequence[Experiment], results: Path) -> set[tuple[str, int]]:
    """Return the data and seeds that every trial has a record of, with a result or without one."""
    return set.intersection(*({*map(store.cell_of, trial.records(results))} for trial in trials))


def failures_text(failed: Sequence[Record], ok: int) -> str:
    """Return in words how many seeds ended in which way.

    >>> failures_text([{"status": "diverged"}, {"status": "diverged"}], ok=3)
    'diverged (2 of 5)'
    """
    counts = Counter[str](record["status"] for record in failed)
    shown = [name for name in STATUSES if counts[name]]
    return ", ".join(f"{name} ({counts[name]} of {len(failed) + ok})" for name in shown)
