"""Read from records how well settings did on validation data. Brings no torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.records.experiment import (
    ByData,
    Experiment,
    by_trial,
    ordered_by_data,
)
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.schema import Setting


def scores_of(
    tried: Sequence[Experiment], seeds: Sequence[int], results: Path
) -> list[float | None]:
    """The trials' scores on the first data that have most of them: data are never mixed."""
    finished = nested.finished_of(tried, results)
    data: ByData = {}
    for record in finished:
        if record["seed"] in seeds:
            data.setdefault(record["data_hash"], {})[record["seed"]] = record
    runs = by_trial(tried, finished)
    found = [
        [tuning_score(*one, seeds, data_hash) for one in zip(tried, runs, strict=True)]
        for data_hash in ordered_by_data(data)
    ]
    return min(found, key=lambda scores: scores.count(None), default=[None] * len(tried))


def tuning_score(
    trial: Experiment, records: Sequence[Record], seeds: Sequence[int], data_hash: str
) -> float | None:
    """Mean validation score over the seeds on those data.

    None while one is missing, -inf if one diverged.
    """
    by_seed = {
        record["seed"]: record
        for record in records
        if record["data_hash"] == data_hash and record["seed"] in seeds
    }
    if set(by_seed) != set(seeds):
        return None
    return fmean(nested.validation_score(trial, record) for record in by_seed.values())


def most_chosen(
    trials: Sequence[Experiment],
    settings: Sequence[Setting],
    found: Mapping[int, Record],
    asked: Sequence[int],
) -> Setting | str:
    """Return the setting that most folds, or seeds, chose; or why there is none yet.

    Args:
        trials: the experiments of the settings.
        settings: what is chosen among.
        found: the combined records by seed.
        asked: the seeds that all have to be there.
    """
    ok = [record for record in found.values() if record["status"] == "ok"]
    if not ok or {*asked} - {*found}:
        seeds = f"{len(found)} of {len(asked)} seeds" if found else "no seed"
        return f"{seeds} of its baseline {'have' if found else 'has'} all {len(trials)} trials yet"
    most, _ = nested.frequencies(ok)[0]
    named = [nested.trial_params(trials, k) for k in range(len(trials))]
    return settings[named.index(most)]
