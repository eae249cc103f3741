"""Nested selection: a number comes from settings that were chosen without it.

Each seed is scored at the settings that the other seeds' validation scores rank first. Where folds
turn, every sample is in some training part, so one choice for all folds has seen what it is scored
on: there each outer fold of each seed is scored at the settings that its own inner scores rank
first. The number is the mean over them; of equal ones the earlier is chosen, and one that diverged
ranks last. Where settings share a point, the other seeds choose which of them counts there: so who
has more settings does not have more draws. Brings no torch.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, cast

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import ByData, Experiment, ordered_by_data
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.errors import UserError

KEPT = ("data", "scored_data")  # details that all settings share
Runs = Sequence[Record]  # of one seed: one for each setting


def chosen_by_data(
    trials: Sequence[Experiment],
    results: Path,
    but: Container[int] = (),
    only: Container[int] | None = None,
    best: int = 1,
    points: Sequence[int] | None = None,
) -> ByData:
    """Combine settings into one record per seed, for seeds that have finished with all of them.

    A seed that diverged with a setting that is chosen has that failed record.

    Args:
        trials: an experiment for each setting, on one dataset.
        but: seeds that are left out.
        only: the seeds that count; None: all others.
        best: over how many settings a mean is taken.
        points: the point of each setting; None: each has its own.

    Raises:
        UserError: records do not say the scores to choose by.
    """
    runs = [trial.finished_cells(results) for trial in trials]
    complete: dict[str, dict[int, Runs]] = {}
    for data_hash, seed in sorted(set(runs[0]).intersection(*runs)):
        if seed not in but and (only is None or seed in only):
            complete.setdefault(data_hash, {})[seed] = [run[data_hash, seed] for run in runs]
    choose = by_inner_scores if trials[0].full_recipe.nested else by_other_seeds
    at = range(len(trials)) if points is None else points
    chosen = {data: dict(choose(trials, seeds, best, at)) for data, seeds in complete.items()}
    return ordered_by_data({data: seeds for data, seeds in chosen.items() if seeds})


def by_inner_scores(
    trials: Sequence[Experiment], seeds: Mapping[int, Runs], best: int, points: Sequence[int]
) -> Iterator[tuple[int, Record]]:
    """Yield each seed with what its folds choose; not one with which every setting diverged."""
    inner = {
        seed: [inner_scores(record) if record["status"] == "ok" else () for record in records]
        for seed, records in seeds.items()
    }
    means = {s: [fmean(one) if one else -inf for one in some] for s, some in inner.items()}
    for seed, records in seeds.items():
        some = counting(others_mean(means, seed), points)
        if any(inner[seed][k] for k in some):
            chosen = best_by_fold([inner[seed][k] for k in some], best)
            yield seed, of_folds(trials, records, [[some[k] for k in fold] for fold in chosen])


def inner_scores(record: Record) -> Sequence[float]:
    """Return the inner scores by which the folds of an ok record choose.

    Raises:
        UserError: it is older than these.
    """
    about = scored_parts(record)
    if not about.folds or len(about.inner) != len(about.folds):
        raise UserError(
            f"{record['key'][:16]}-seed{record['seed']} has no inner scores, by which each fold "
            "chooses: remove this record, and a sweep runs its cell anew"
        )
    return about.inner


def of_folds(
    trials: Sequence[Experiment], records: Runs, picked: Sequence[Sequence[int]]
) -> Record:
    """Combine the settings of one seed, each fold with the settings that it chose."""
    parts = {k: scored_parts(records[k]) for some in picked for k in some}
    folds = [fmean(parts[k].folds[i] for k in some) for i, some in enumerate(picked)]
    mean, main = fmean(folds), records[picked[0][0]]["main"]
    metrics = {main: mean, f"{main}_std_over_folds": pstdev(folds, mean)}
    inner = [fmean(parts[k].inner[i] for k in some) for i, some in enumerate(picked)]
    flat = [k for some in picked for k in some]
    return combined(trials, records, flat, metrics, {"folds": folds, "inner": inner})


def by_other_seeds(
    trials: Sequence[Experiment], seeds: Mapping[int, Runs], best: int, points: Sequence[int]
) -> Iterator[tuple[int, Record]]:
    """Yield each seed at the settings that the others rank first; nothing for one seed alone."""
    scores = {
        seed: [validation_score(*pair) for pair in zip(trials, records, strict=True)]
        for seed, records in seeds.items()
    }
    for seed, records in seeds.items() if len(seeds) > 1 else ():
        ranking = others_mean(scores, seed)
        some = counting(ranking, points)
        chosen = [some[k] for k in ranked_first([ranking[k] for k in some], best)]
        picked = [records[k] for k in chosen]
        failed = next((record for record in picked if record["status"] != "ok"), None)
        by = {"inner": [fmean(ranking[k] for k in chosen)]}
        yield seed, failed or combined(trials, records, chosen, mean_metrics(picked), by)


def others_mean(scores: Mapping[int, Sequence[float]], seed: int) -> list[float]:
    """Return each setting's mean score with the other seeds; one seed alone has its own."""
    others = [some for other, some in scores.items() if other != seed] or [scores[seed]]
    return [fmean(each) for each in zip(*others, strict=True)]


def counting(ranking: Sequence[float], points: Sequence[int]) -> list[int]:
    """Return which setting counts at each point: the one that ranks first, of equal the earlier.

    >>> counting([70.0, 80.0, 80.0, 60.0, 90.0], [1, 2, 2, 3, 3])
    [0, 1, 4]
    """
    order = sorted(range(len(points)), key=lambda k: -ranking[k])
    return sorted({points[k]: k for k in reversed(order)}.values())


def mean_metrics(records: Runs) -> dict[str, float]:
    """Return the mean of each metric that all records have."""
    shared = set.intersection(*(set(record["metrics"]) for record in records))
    names = (name for name in records[0]["metrics"] if name in shared)
    return {name: fmean(record["metrics"][name] for record in records) for name in names}


def combined(
    trials: Sequence[Experiment],
    records: Runs,
    chosen: Sequence[int],
    metrics: dict[str, float],
    details: Fields,
) -> Record:
    """Return a seed's record at the settings chosen; its seconds are what choosing costs."""
    first = records[chosen[0]]
    memory = (record.get("peak_memory_mib") for record in records if record["status"] == "ok")
    about, params = scored_parts(first), {k: trial_params(trials, k) for k in {*chosen}}
    kept: Fields = {key: value for key, value in first["details"].items() if key in KEPT}
    kept = {**kept, **details, "samples": about.samples, "test_part": about.test_part}
    made: Fields = {
        **first,
        "params": {},
        "metrics": metrics,
        "details": {
            **kept,
            "chosen": [params[k] for k in chosen],
            "keys": [records[k]["key"] for k in chosen],
        },
        "seconds": sum(record.get("seconds") or 0.0 for record in records),
        "peak_memory_mib": max(filter(None, memory), default=None),
    }
    return cast(Record, made)


def validation_score(trial: Experiment, record: Record) -> float:
    """Return a record's validation score: percent, larger is better; -inf if it diverged.

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


def trial_params(trials: Sequence[Experiment], k: int) -> dict[str, Any]:
    """Return the parameters of a setting, with its loss and its rate where these differ."""
    losses = {trial.loss.name for trial in trials}
    rates = {trial.recipe.get("lr") for trial in trials}
    loss = {"loss": trials[k].loss.name} if len(losses) > 1 else {}
    rate = {"lr": trials[k].recipe["lr"]} if len(rates) > 1 else {}
    return {**loss, **trials[k].loss.params, **rate}


def ranked_first(scores: Sequence[float], count: int) -> list[int]:
    """Return the positions of the best scores, of equal ones the earlier.

    Those of -inf are left out, unless there are no others.

    >>> ranked_first([70.0, 80.0, 80.0, 60.0], 2), ranked_first([1.0, -inf], 2)
    ([1, 2], [0])
    """
    order = sorted(range(len(scores)), key=lambda k: -scores[k])[:count]
    return [k for k in order if scores[k] > -inf] or order


def best_by_fold(inner: Sequence[Sequence[float]], count: int = 1) -> list[list[int]]:
    """Return for each fold the settings with the best inner scores; diverged ones have none.

    >>> best_by_fold([[70.0, 80.0], [75.0, 80.0], []])
    [[1], [0]]
    """
    folds = range(max(map(len, inner)))
    return [ranked_first([some[i] if some else -inf for some in inner], count) for i in folds]


def frequencies(records: Sequence[Record]) -> list[tuple[dict[str, Any], int]]:
    """Count how often folds or seeds chose which setting, the most frequent first."""
    chosen = [params for record in records for params in record["details"]["chosen"]]
    counts = Counter(map(store.canonical, chosen))
    named = {store.canonical(params): params for params in chosen}
    return [(named[key], count) for key, count in counts.most_common()]
