"""Measure how far two independent searches of one loss differ, under each rule of choice.

    python tests/tools/choice_rules.py results/search-photographs.yaml --gain 7.5

The file's rows and columns are the settings, such as temperatures and learning rates of InfoNCE on
one data set. Many times the settings are parted into two searches at random; each chooses by its
rule and has a number, a mean over seeds. The standard deviation of their difference is printed as a
share of the gain: what a comparison of two equal losses adds to the noise of seeds.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.nested import counting
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.benchmarks.tables.load import load_table

Array = np.ndarray[Any, Any]  # (settings, seeds) or (settings, seeds, folds)
Rule = Callable[[Array, Array], float]


def scores(works: list[Experiment], seeds: list[int], results: Path) -> tuple[Array, Array]:
    """Return the validation and test scores of all settings with the seeds that all have."""
    found = [work.ok_by_seed(results) for work in works]
    shared = [seed for seed in seeds if all(seed in some for some in found)]
    about = [[scored_parts(some[seed]) for seed in shared] for some in found]
    if any(one.inner for some in about for one in some):
        inner = [[one.inner for one in some] for some in about]
        return np.array(inner), np.array([[one.folds for one in some] for some in about])
    tests = [[some[seed]["metrics"][some[seed]["main"]] for seed in shared] for some in found]
    return np.array([[one.validation for one in some] for some in about]), np.array(tests)


def first(validation: Array, count: int) -> Array:
    """Return the settings with the best scores."""
    return np.argsort(-validation, kind="stable")[:count]


def two_trial_seeds(validation: Array, test: Array) -> float:
    """Let two seeds choose and the others show."""
    return float(test[first(validation[:, :2].mean(1), 1)][:, 2:].mean())


def seed_numbers(
    validation: Array, test: Array, count: int, points: Sequence[int] | None = None
) -> Array:
    """Let the other seeds, or inner scores, choose so many settings for each seed or fold."""
    n, found = test.shape[1], []
    for k in range(n):
        ranking = np.delete(validation, k, axis=1).reshape(len(test), -1).mean(1)
        some = counting(ranking.tolist(), range(len(test)) if points is None else points)
        if test.ndim == 3:
            folds = zip(validation[some, k].T, test[some, k].T, strict=True)
            found.append(np.mean([score[first(inner, count)].mean() for inner, score in folds]))
        else:
            found.append(test[some, k][first(ranking[some], count)].mean())
    return np.array(found)


def nested(count: int) -> Rule:
    """Return the mean over seeds."""
    return lambda validation, test: float(seed_numbers(validation, test, count).mean())


RULES: dict[str, Rule] = {
    "two seeds choose, others show": two_trial_seeds,
    **{f"nested, the mean of {n}": nested(n) for n in (1, 2, 3, 4)},
}


def spread(
    rule: Rule, validation: Array, test: Array, points: int, draws: int
) -> tuple[float, float]:
    """Return the mean number, and the deviation of two searches' difference, in points."""
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        order = rng.permutation(len(test))
        found.append(
            [
                rule(validation[some], test[some])
                for some in (order[:points], order[points:][:points])
            ]
        )
    pairs = np.array(found)
    return float(pairs.mean()), float(np.std(pairs[:, 0] - pairs[:, 1]))


def main() -> None:
    """Print a line for each rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument(
        "--gain", type=float, required=True, help="InfoNCE over the better of untrained rows"
    )
    parser.add_argument("--points", type=int, nargs="+", default=[6, 8, 10])
    parser.add_argument("--seeds", type=int, help="only so many of the file's seeds")
    parser.add_argument("--row", help="only this row's trials, of a file that searches")
    parser.add_argument("--column")
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()
    table = load_table(asked.file)
    if asked.row:
        place = table.places[asked.row, asked.column]
        works = [place.experiment(one) for one in place.search.trials.settings]  # type: ignore[attr-defined]
    else:
        works = [place.work for place in table.places.values()]
    validation, test = scores(works, list(table.seeds)[: asked.seeds], asked.results)
    print(f"{len(test)} settings, {test.shape[1]} seeds, gain {asked.gain}")
    for points in asked.points:
        if 2 * points <= len(test):
            for name, rule in RULES.items():
                if test.ndim == 3 and rule is two_trial_seeds:
                    continue
                mean, deviation = spread(rule, validation, test, points, 2000)
                print(
                    f"{points:3} points  {name:30} {mean:6.2f}",
                    f"{100 * deviation / asked.gain:5.1f} %",
                )


if __name__ == "__main__":
    main()
