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
    """Return each trial's mean validation score over the seeds.

    None while one is missing, -inf if one diverged. All are of the first data that have most of
    them: data are never mixed.
    """
    found = [one for one in nested.finished_of(tried, results) if one["seed"] in seeds]
    data: ByData = {}
    for record in found:
        data.setdefault(record["data_hash"], {})[record["seed"]] = record
    scores = []
    for data_hash in ordered_by_data(data):
        runs = by_trial(tried, [one for one in found if one["data_hash"] == data_hash])
        by_seed = [{record["seed"]: record for record in some} for some in runs]
        scores.append(
            [
                fmean(nested.validation_score(trial, one) for one in some.values())
                if {*some} == {*seeds}
                else None
                for trial, some in zip(tried, by_seed, strict=True)
            ]
        )
    return min(scores, key=lambda some: some.count(None), default=[None] * len(tried))


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
