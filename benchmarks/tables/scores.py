"""Read from records how well settings did on validation data. Brings no torch."""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from statistics import fmean

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.records.experiment import ByData, Experiment, ordered_by_data
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.rows import Setting
from contrastbench.errors import UserError


def scores_of(
    tried: Sequence[Experiment], seeds: Sequence[int], results: Path
) -> list[float | None]:
    """The trials' scores on the first data that have most of them: data are never mixed."""
    finished = nested.finished_of(tried, results)
    data: ByData = {}
    for record in finished:
        if record["seed"] in seeds:
            data.setdefault(record["data_hash"], {})[record["seed"]] = record
    runs = [(trial, [one for one in finished if trial.matches(one)]) for trial in tried]
    found = [
        [tuning_score(trial, records, seeds, data_hash) for trial, records in runs]
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
    return fmean(validation_score(trial, record) for record in by_seed.values())


def validation_score(trial: Experiment, record: Record) -> float:
    """A record's validation score: percent, larger is better.

    Raises:
        UserError: the record has none.
    """
    if record["status"] != "ok":
        return -inf
    validation = scored_parts(record).validation
    if validation is None:
        raise UserError(
            f"{trial.label}, seed {record['seed']}: the record has no details.validation to "
            "choose by: domain "
            f"{trial.domain} does not give one, or the record is older than that and has to be "
            "deleted"
        )
    return validation


def most_chosen(trials: Sequence[Experiment], but: Sequence[int], results: Path) -> Setting | str:
    """Return the setting that most folds of all seeds chose, or why there is none yet."""
    records = next(iter(nested.ok_by_data(trials, results, but).values()), {})
    if not records:
        return f"no seed of its baseline has all {len(trials)} trials yet"
    params, _ = nested.frequencies(list(records.values()))[0]
    loss = params.get("loss", trials[0].loss.name)
    return Setting({key: value for key, value in params.items() if key != "loss"}, loss)
