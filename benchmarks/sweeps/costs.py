"""What a cell will cost, from the seconds of records. Brings no torch."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.losses.spec import NONE


class Cost(NamedTuple):
    """Seconds, whether they are of the same recipe, and whether nothing was measured."""

    seconds: float
    same_recipe: bool
    estimated: bool = False


class Costs:
    """Median seconds of the nearest records.

    Of the same experiment, dataset and recipe, or dataset; of no other dataset any record is read.
    What was trained says nothing of what was not, and the other way round.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.seconds: dict[str, list[float]] = {}  # by what is alike
        self.read = set[Path]()  # folders of datasets
        self.medians: dict[str, float] = {}

    def add(self, name: str, seconds: Sequence[float]) -> None:
        """What records that are alike in this took."""
        self.seconds.setdefault(name, []).extend(seconds)
        self.medians.pop(name, None)

    def learn(self, experiment: Experiment, seconds: float) -> None:
        """An experiment has just taken so long; what is read later will tell it anyway."""
        if experiment.key in self.seconds:
            self.add(experiment.key, [seconds])
        if experiment.folder(self.results).parent in self.read:
            for name in levels(*describe(experiment)):
                self.add(name, [seconds])

    def of(self, experiment: Experiment) -> Cost | None:
        """The cost of one seed; None if its dataset has never been run.

        Another one may take seconds or weeks.
        """
        if experiment.key not in self.seconds:
            ok = [one for one in experiment.records(self.results) if one["status"] == "ok"]
            self.add(experiment.key, [record["seconds"] for record in ok])
        if self.seconds[experiment.key]:
            return Cost(self.median(experiment.key), same_recipe=True)
        self.look(experiment.folder(self.results).parent)
        same, other = levels(*describe(experiment))
        known = (
            Cost(self.median(name), name == same) for name in (same, other) if name in self.seconds
        )
        return next(known, None)

    def look(self, dataset: Path) -> None:
        """Read what the records of a dataset took, once."""
        if dataset not in self.read and dataset.is_dir():
            self.read.add(dataset)
            for of, seconds in reading.seconds(dataset):
                trained, recipe = of["loss"] != NONE, of["recipe"]
                for name in levels(of["domain"], of["dataset"], trained, recipe) if seconds else ():
                    self.add(name, seconds)

    def median(self, name: str) -> float:
        """Of its seconds."""
        if name not in self.medians:
            self.medians[name] = median(self.seconds[name])
        return self.medians[name]


def describe(experiment: Experiment) -> tuple[str, str, bool, Any]:
    """What records of the experiment hold."""
    recipe = experiment.full_recipe.model_dump(mode="json")
    return experiment.domain, experiment.dataset, experiment.trained, recipe


def levels(domain: str, dataset: str, trained: bool, recipe: Any) -> list[str]:
    """Names of what is alike, the nearest first."""
    alike = (domain, dataset, trained)
    return [store.canonical(what) for what in ((*alike, recipe), alike)]


def duration(seconds: float) -> str:
    """For people.

    >>> duration(4000), duration(75), duration(3.2)
    ('1 h 07 min', '1 min 15 s', '3 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{round(seconds / 60) // 60} h {round(seconds / 60) % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
