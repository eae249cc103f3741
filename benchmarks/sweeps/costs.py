"""What a cell will cost, from the seconds of records. Brings no torch."""

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment


class Cost(NamedTuple):
    """Seconds, and whether they are of the same recipe."""

    seconds: float
    same_recipe: bool


class Costs:
    """Median seconds of the nearest records.

    Of the same experiment, dataset and recipe, or dataset.
    """

    def __init__(self, results: Path) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        for path in results.glob("runs/*/*/*/*.json"):
            record = store.read(path)
            if record["status"] == "ok":
                values = (
                    record[name] for name in ("domain", "dataset", "recipe", "loss", "params")
                )
                self.add(record["seconds"], *values)

    def add(self, seconds: float, *what: Any) -> None:
        """A record of this domain, dataset, recipe, loss and parameters."""
        for level in levels(*what):
            self.seconds[level].append(seconds)

    def learn(self, experiment: Experiment, seconds: float) -> None:
        """An experiment has just taken so long."""
        self.add(seconds, *describe(experiment))

    def of(self, experiment: Experiment) -> Cost | None:
        """The cost of one seed; None if its dataset has never been run.

        Another one may take seconds or weeks.
        """
        *same, other = levels(*describe(experiment))
        known = (
            Cost(median(self.seconds[name]), name in same)
            for name in (*same, other)
            if name in self.seconds
        )
        return next(known, None)


def describe(experiment: Experiment) -> tuple[Any, ...]:
    """What records of the experiment hold."""
    recipe = experiment.full_recipe.model_dump(mode="json")
    return (
        experiment.domain,
        experiment.dataset,
        recipe,
        experiment.loss.complete.name,
        experiment.loss.complete.params,
    )


def levels(domain: str, dataset: str, recipe: Any, loss: str, params: Any) -> list[str]:
    """Names of what is alike, the nearest first."""
    near = [(domain, dataset, recipe, loss, params), (domain, dataset, recipe), (domain, dataset)]
    return [store.canonical(what) for what in near]


def duration(seconds: float) -> str:
    """For people.

    >>> duration(4000), duration(75), duration(3.2)
    ('1 h 07 min', '1 min 15 s', '3 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{round(seconds / 60) // 60} h {round(seconds / 60) % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
