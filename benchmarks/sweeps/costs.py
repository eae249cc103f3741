"""Forecast the cost of a cell from the seconds of records, without torch."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.losses.spec import NONE

Recipe = dict[str, Any]
Recipes = dict[str, tuple[Recipe, list[float]]]  # by canonical form: what each took
Alike = tuple[str, str, bool]  # domain, dataset, and whether anything is trained


class Cost(NamedTuple):
    """Seconds, whether they come from the same recipe, and whether nothing was measured."""

    seconds: float
    same_recipe: bool
    estimated: bool = False


class Costs:
    """Median seconds of the nearest records.

    Of the same experiment, else of its dataset and the recipes that differ from its own in the
    fewest settings; of no other dataset any record is read. What was trained says nothing of what
    was not, and the other way round.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.own: dict[str, list[float]] = {}  # by key of an experiment
        self.alike: dict[Alike, Recipes] = {}
        self.read = set[Path]()  # folders of datasets
        self.medians: dict[str, float] = {}
        self.nearest: dict[Alike, dict[str, Cost]] = {}  # by canonical form of a recipe

    def add(self, key: str, seconds: Sequence[float]) -> None:
        """Add the seconds of an experiment's records."""
        self.own.setdefault(key, []).extend(seconds)
        self.medians.pop(key, None)

    def add_alike(self, alike: Alike, recipe: Recipe, seconds: Sequence[float]) -> None:
        """Add the seconds of similar records with a recipe."""
        recipes = self.alike.setdefault(alike, {})
        recipes.setdefault(store.canonical(recipe), (recipe, []))[1].extend(seconds)
        self.nearest.pop(alike, None)

    def learn(self, experiment: Experiment, seconds: float) -> None:
        """Learn the time that an experiment has just taken."""
        if experiment.key in self.own:
            self.add(experiment.key, [seconds])
        if experiment.folder(self.results).parent in self.read:
            self.add_alike(*describe(experiment), [seconds])

    def of(self, experiment: Experiment) -> Cost | None:
        """The cost of one seed; None if its dataset has never been run.

        Another one may take seconds or weeks.
        """
        key = experiment.key
        if key not in self.own:
            ok = [one for one in experiment.records(self.results) if one["status"] == "ok"]
            self.add(key, [record["seconds"] for record in ok])
        if not self.own[key]:
            self.look(experiment.folder(self.results).parent)
            return self.of_nearest(experiment)
        if key not in self.medians:
            self.medians[key] = median(self.own[key])
        return Cost(self.medians[key], same_recipe=True)

    def look(self, dataset: Path) -> None:
        """Read what the records of a dataset took, once."""
        if dataset not in self.read and dataset.is_dir():
            self.read.add(dataset)
            for of, seconds in reading.seconds(dataset):
                if seconds:
                    alike = (of["domain"], of["dataset"], of["loss"] != NONE)
                    self.add_alike(alike, of["recipe"], seconds)

    def of_nearest(self, experiment: Experiment) -> Cost | None:
        """Return the cost by recipes that differ in the fewest settings, or None."""
        alike, recipe = describe(experiment)
        if alike not in self.alike:
            return None
        known, name = self.nearest.setdefault(alike, {}), store.canonical(recipe)
        if name not in known:
            # a setting that a record lacks is younger than it: it had the default
            near = [
                (differences(recipe, {**experiment.default_recipe, **one}), took)
                for one, took in self.alike[alike].values()
            ]
            fewest = min(count for count, _ in near)
            seconds = [each for count, took in near if count == fewest for each in took]
            known[name] = Cost(median(seconds), same_recipe=fewest == 0)
        return known[name]


def describe(experiment: Experiment) -> tuple[Alike, Recipe]:
    """Return the description that records of the experiment have."""
    recipe = experiment.full_recipe.model_dump(mode="json")
    return (experiment.domain, experiment.dataset, experiment.trained), recipe


def differences(one: Recipe, other: Recipe) -> int:
    """Return in how many settings two recipes differ.

    >>> differences({"epochs": 10, "limit": 600}, {"epochs": 20})
    2
    """
    return sum(one.get(name) != other.get(name) for name in one.keys() | other.keys())


def duration(seconds: float) -> str:
    """Format seconds for people.

    >>> duration(4000), duration(75), duration(3.2)
    ('1 h 07 min', '1 min 15 s', '3 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{round(seconds / 60) // 60} h {round(seconds / 60) % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
