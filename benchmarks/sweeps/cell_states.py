"""Find the state of a plan's cells from records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment

State = Literal["done", "diverged", "failed", "missing"]


class Task(NamedTuple):
    """An experiment with a seed, and what the records say of it."""

    experiment: Experiment
    seed: int
    state: State
    apart: str = ""  # what tells the experiment from others of its label

    @property
    def label(self) -> str:
        """The experiment, for people."""
        return f"{self.experiment.label}{self.apart}"

    @property
    def name(self) -> str:
        """Return a name for files about the cell, and about all that its training makes."""
        return f"{self.experiment.scored[0].key[:16]}-seed{self.seed}"

    @property
    def key(self) -> tuple[str, int]:
        """Return a key that is equal for tasks of one cell."""
        return self.experiment.key, self.seed


def survey(work: Iterable[tuple[Experiment, Sequence[int]]], results: Path) -> Iterator[Task]:
    """Yield the tasks of experiments with their seeds, each once."""
    work, seen = list(work), set[tuple[str, int]]()
    apart = told_apart(experiment for experiment, _ in work)
    for experiment, seeds in work:
        statuses = defaultdict[int, set[str]](set)
        for record in experiment.records(results):
            statuses[record["seed"]].add(record["status"])
        for seed in seeds:
            if (experiment.key, seed) not in seen:
                seen.add((experiment.key, seed))
                yield Task(experiment, seed, task_state(statuses[seed]), apart[experiment.key])


def told_apart(work: Iterable[Experiment]) -> dict[str, str]:
    """Return what the recipes of experiments with one label differ in, by the experiment's key.

    >>> from contrastbench.losses.spec import LossSpec
    >>> recipes = {"encoder": "raw"}, {"encoder": "gin"}
    >>> two = [Experiment("graph", "DD", LossSpec("none"), recipe) for recipe in recipes]
    >>> list(told_apart(two).values()), list(told_apart(two[:1]).values())
    ([' (encoder=raw)', ' (encoder=gin)'], [''])
    """
    by_label: dict[str, dict[str, Experiment]] = {}
    for experiment in work:
        by_label.setdefault(experiment.label, {})[experiment.key] = experiment
    return {key: text for same in by_label.values() for key, text in differing_recipe(same).items()}


def differing_recipe(same: dict[str, Experiment]) -> dict[str, str]:
    """Return, by key, the recipe values that are not the same in all."""
    if len(same) == 1:
        return dict.fromkeys(same, "")
    recipes = {key: work.full_recipe.model_dump(mode="json") for key, work in same.items()}
    names = [
        name
        for name in next(iter(recipes.values()))
        if len({store.canonical(recipe.get(name)) for recipe in recipes.values()}) > 1
    ]
    return {
        key: f" ({', '.join(f'{name}={recipe.get(name)}' for name in names)})"
        for key, recipe in recipes.items()
    }


def task_state(statuses: set[str]) -> State:
    """Return the state of a task whose records have these statuses.

    >>> task_state({"failed", "ok"})
    'done'
    """
    if "ok" in statuses:
        return "done"
    return "diverged" if "diverged" in statuses else "failed" if statuses else "missing"
