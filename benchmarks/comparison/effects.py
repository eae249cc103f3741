"""Effects on data sets: differences from the baseline that are comparable between sets.

A difference of one point says little where training gains thirty, and much where it gains two. So
an effect is the difference from the baseline over the baseline's gain.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean

from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import Effects, Measured, SetName
from contrastbench.benchmarks.comparison.signed_rank import DIGITS

Gains = Mapping[str, float]  # by column: two probes of one set gain differently
LEAST_GAIN = 1.0  # percent points; a share of less is noise
MIN_STANDARD_ERRORS = 2.0  # standard errors that a gain exceeds


def gains_of(untrained: Sequence[Comparison]) -> tuple[dict[str, float], list[str]]:
    """Return what training gains in each column, and where that is too little.

    A set is named as a whole where this holds for all its columns.
    """
    by_column: dict[str, list[Comparison]] = {}
    for place in untrained:
        if place.difference is not None:
            by_column.setdefault(place.column, []).append(place)
    best = [max(rows, key=lambda place: place.difference or 0.0) for rows in by_column.values()]
    gains = {place.column: -(place.difference or 0.0) for place in best if is_clear_gain(place)}
    whole = {place.data_set for place in best if place.column in gains}
    little = [place for place in best if place.column not in gains]
    names = [place.column if place.data_set in whole else place.dataset for place in little]
    return gains, list(dict.fromkeys(names))


def is_clear_gain(best: Comparison) -> bool:
    """Return whether the best row without a training is so far below that its column counts."""
    gain, error = -(best.difference or 0.0), (best.std or 0.0) / sqrt(len(best.seeds))
    return gain >= LEAST_GAIN and gain >= MIN_STANDARD_ERRORS * error


def effects_by_set(mine: Iterable[Comparison], gains: Gains) -> tuple[Effects, set[SetName]]:
    """Return the effect on each set that counts, and those of them on which the row has failed."""
    effects: dict[SetName, list[Measured]] = {}
    failed = set[SetName]()
    for place in mine:
        name = place.data_set
        if gains and place.column not in gains:
            continue
        if place.has_failed:
            failed.add(name)
        if (effect := measured(place, gains.get(place.column))) is not None:
            effects.setdefault(name, []).append(effect)
    return {name: of_one_set(columns) for name, columns in effects.items()}, failed


def measured(place: Comparison, gain: float | None) -> Measured | None:
    """Return the effect in one column, as a share of the gain if there is one; None: no number.

    A training that diverges loses all that training gains: its effect is -100 %, with each seed
    that does. Without a gain a place with such a seed has no number. A difference of the same runs,
    or one that is the same with two or more diverged seeds or zero with every seed, is no chance.
    """
    if place.same:
        return Measured(0.0)
    if place.has_failed and gain is None:
        return None
    if place.difference is None and not place.lost:
        return None
    scale = 1.0 if gain is None else gain / 100
    by_seed = {k: d / scale for k, d in zip(place.seeds, place.differences, strict=True)}
    by_seed |= dict.fromkeys(place.lost, -100.0)
    always = {*by_seed.values()} == {-100.0} or not any(
        round(value, DIGITS) for value in by_seed.values()
    )
    is_random = len(by_seed) == 1 or not always
    return Measured(fmean(by_seed.values()), by_seed if is_random else {})


def of_one_set(columns: Sequence[Measured]) -> Measured:
    """Return the mean over columns of a set, such as two probes of one training."""
    drawn = [column.by_seed for column in columns if column.by_seed]
    shared = set.intersection(*map(set, drawn)) if drawn else ()
    seeds = sorted(shared) or [seed for c in drawn[:1] for seed in list(c)[:1]]  # no freedom
    sums = {seed: sum(column.get(seed, 0.0) for column in drawn) for seed in seeds}
    by_seed = {seed: total / len(columns) for seed, total in sums.items()}
    return Measured(fmean(column.mean for column in columns), by_seed)
