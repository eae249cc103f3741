"""Nested selection: each outer fold's parameters are chosen on its own training part.

Where folds turn, every sample is in some training part, so one choice for all folds has seen what
it is scored on. Here each outer fold of each seed takes the experiment with the best inner score of
that fold, and has the accuracy of that experiment. Brings no torch.
"""

import shlex
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, cast

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import (
    ByData,
    Experiment,
    ordered_by_data,
    records_of,
)
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.errors import UserError


def ok_by_data(trials: Sequence[Experiment], results: Path, but: Container[int] = ()) -> ByData:
    """Combine the trials into one record per seed, for seeds that all have finished.

    Args:
        trials: experiments on one dataset, by one recipe.
        results: the folder that holds runs/.
        but: seeds that are left out.

    Raises:
        UserError: records do not say their inner scores.
    """
    finished = [record for record in finished_of(trials, results) if record["seed"] not in but]
    runs = [
        {store.cell_of(record): record for record in finished if t.matches(record)} for t in trials
    ]
    shared = set(runs[0]).intersection(*runs)
    if old := [run[place] for place in sorted(shared) for run in runs if is_old(run[place])]:
        raise UserError(advice([store.record_path(results, record) for record in old]))
    chosen: ByData = {}
    for data_hash, seed in sorted(shared):
        record = nested_choice(trials, [run[data_hash, seed] for run in runs])
        if record:
            chosen.setdefault(data_hash, {})[seed] = record
    return ordered_by_data(chosen)


def finished_of(trials: Sequence[Experiment], results: Path) -> list[Record]:
    """Return the finished records of experiments on one dataset."""
    return [one for one in records_of(trials, results) if one["status"] in store.FINAL_STATUSES]


def outdated(trials: Sequence[Experiment], results: Path, seeds: Container[int]) -> list[Path]:
    """Return the records of the trials that are older than inner scores."""
    return [
        store.record_path(results, record)
        for record in finished_of(trials, results)
        if record["seed"] in seeds and is_old(record)
    ]


def is_old(record: Record) -> bool:
    """Return whether it does not say the inner scores by which a fold chooses."""
    if record["status"] != "ok":
        return False
    about = scored_parts(record)
    return len(about.inner) != len(about.folds) or not about.folds


def advice(paths: Sequence[Path]) -> str:
    """Return one line on what to do with records that lack inner scores."""
    some = " ".join(shlex.quote(str(path)) for path in paths)
    packed = "bench pack --undo, then " * (not all(path.exists() for path in paths))
    return (
        f"records without inner scores, which each fold chooses by ({len(paths)}, of an early "
        f"release): remove them, and a sweep runs their cells anew: {packed}rm {some}"
    )


def nested_choice(trials: Sequence[Experiment], records: Sequence[Record]) -> Record | None:
    """Combine the trials of one seed: each fold comes from the trial with the best inner score.

    Its seconds are those of all trials: that is what choosing costs. None: every trial diverged.
    """
    ok = [record for record in records if record["status"] == "ok"]
    if not ok:
        return None
    inner = [scored_parts(record).inner if record["status"] == "ok" else () for record in records]
    best = best_by_fold(inner)
    folds = [scored_parts(records[k]).folds[i] for i, k in enumerate(best)]
    mean = fmean(folds)
    made: Fields = {
        **ok[0],
        "params": {},
        "metrics": {ok[0]["main"]: mean, f"{ok[0]['main']}_std_over_folds": pstdev(folds, mean)},
        "details": {
            "folds": folds,
            "inner": [inner[k][i] for i, k in enumerate(best)],
            "test_part": "folds",
            "samples": scored_parts(ok[0]).samples,
            "chosen": [trial_params(trials, k) for k in best],
        },
        "seconds": sum(record.get("seconds") or 0.0 for record in records),
        "peak_memory_mib": max(
            filter(None, (one.get("peak_memory_mib") for one in ok)), default=None
        ),
    }
    return cast(Record, made)


def trial_params(trials: Sequence[Experiment], k: int) -> dict[str, Any]:
    """Return the parameters of a trial, with its loss if the trials have several losses."""
    several = len({trial.loss.name for trial in trials}) > 1
    return {**({"loss": trials[k].loss.name} if several else {}), **trials[k].loss.params}


def best_by_fold(inner: Sequence[Sequence[float]]) -> list[int]:
    """Return for each fold the trial with the best inner score, the first of equal ones.

    >>> best_by_fold([[70.0, 80.0], [75.0, 80.0], []])
    [1, 0]
    """
    done = [k for k, scores in enumerate(inner) if scores]
    return [max(done, key=lambda k: inner[k][fold]) for fold in range(len(inner[done[0]]))]


def frequencies(records: Sequence[Record]) -> list[tuple[dict[str, Any], int]]:
    """Count how many folds of all seeds chose which parameters, the most frequent first."""
    chosen = [params for record in records for params in record["details"]["chosen"]]
    counts = Counter(map(store.canonical, chosen))
    named = {store.canonical(params): params for params in chosen}
    return [(named[key], count) for key, count in counts.most_common()]
