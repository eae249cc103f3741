"""Forecast the seconds of a cell from records of like cells, without torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Experiment, default_recipe
from contrastbench.losses.spec import NONE


class Costs:
    """Median seconds of an experiment's records, or else of like cells.

    Like cells may have another loss and another learning rate; all else is the same. Nine of ten
    shipped records took between half and twice such a median. Where one more setting differs, only
    half of them did, so such records are no forecast.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.took: dict[str, list[float]] = {}  # by an experiment's key, and by what is shared
        self.medians: dict[str, float] = {}
        self.names: dict[str, str] = {}  # of what is shared, by an experiment's key
        self.read = set[Path]()  # folders of datasets

    def of(self, experiment: Experiment) -> float | None:
        """Return the seconds of one seed, or None where no like cell has a record."""
        key = experiment.key
        if key not in self.took:
            ok = [one for one in experiment.records(self.results) if one["status"] == "ok"]
            self.add(key, [record["seconds"] for record in ok])
        if self.took[key]:
            return self.median(key)
        if key not in self.names:
            self.look(experiment)
            self.names[key] = cost_key(experiment_fields(experiment))
        return self.median(self.names[key])

    def learn(self, experiment: Experiment, seconds: float) -> None:
        """Learn the time that an experiment has just taken."""
        if experiment.key in self.took:
            self.add(experiment.key, [seconds])
        if experiment.folder(self.results).parent in self.read:
            self.add(cost_key(experiment_fields(experiment)), [seconds])

    def look(self, experiment: Experiment) -> None:
        """Read the seconds of all records of the experiment's dataset, once."""
        dataset = experiment.folder(self.results).parent
        if dataset in self.read:
            return
        self.read.add(dataset)
        for cell, seconds in reading.recorded_seconds(dataset) if dataset.is_dir() else ():
            # a setting that a record lacks is younger than it: it had the default
            recipe = {**default_recipe(experiment.domain), **cell["recipe"]}
            self.add(cost_key({**cell, "recipe": recipe}), seconds)

    def add(self, name: str, seconds: Sequence[float]) -> None:
        """Add the seconds of records."""
        self.took.setdefault(name, []).extend(seconds)
        self.medians.pop(name, None)

    def median(self, name: str) -> float | None:
        """Return the median of the seconds under a name, or None where there are none."""
        if name not in self.medians and self.took.get(name):
            self.medians[name] = median(self.took[name])
        return self.medians.get(name)


def experiment_fields(experiment: Experiment) -> dict[str, Any]:
    """Return the description that records of the experiment have."""
    recipe = experiment.full_recipe.model_dump(mode="json")
    names = {"domain": experiment.domain, "dataset": experiment.dataset}
    return {**names, "loss": experiment.loss.name, "recipe": recipe}


def cost_key(cell: Mapping[str, Any]) -> str:
    """Return in canonical form what like cells share: all but the loss and the learning rate."""
    recipe = {key: value for key, value in cell["recipe"].items() if key != "lr"}
    return store.canonical([cell["domain"], cell["dataset"], cell["loss"] != NONE, recipe])


def duration(seconds: float) -> str:
    """Format seconds for people.

    >>> duration(4000), duration(75), duration(3.2)
    ('1 h 07 min', '1 min 15 s', '3 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{round(seconds / 60) // 60} h {round(seconds / 60) % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
