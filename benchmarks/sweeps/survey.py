"""What records say of the cells that a plan asks for."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from contrastbench.benchmarks.records.experiment import Experiment

State = Literal["done", "diverged", "failed", "missing"]


class Task(NamedTuple):
    """An experiment with a seed, and what the records say of it."""

    experiment: Experiment
    seed: int
    state: State

    @property
    def key(self) -> tuple[str, int]:
        """Equal for tasks of one cell."""
        return self.experiment.key, self.seed


def survey(work: Iterable[tuple[Experiment, Sequence[int]]], results: Path) -> Iterator[Task]:
    """The tasks of experiments with their seeds, each once."""
    seen: set[tuple[str, int]] = set()
    for experiment, seeds in work:
        records = experiment.records(results)
        for seed in seeds:
            if (experiment.key, seed) not in seen:
                seen.add((experiment.key, seed))
                statuses = {record["status"] for record in records if record["seed"] == seed}
                yield Task(experiment, seed, state(statuses))


def state(statuses: set[str]) -> State:
    """What records of these statuses make of a task.

    >>> state({"failed", "ok"})
    'done'
    """
    if "ok" in statuses:
        return "done"
    return "diverged" if "diverged" in statuses else "failed" if statuses else "missing"
