"""Forecast the seconds of a cell from records of like cells, without torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Experiment, filled
from contrastbench.losses.spec import NONE


class Costs:
    """Seconds of like cells: those of any loss and learning rate, with all else the same.

    It is the lower quartile, as many records come from busy machines, where a cell takes longer.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.took: dict[Path, dict[str, Parts]] = {}  # by dataset, then by what cells share
        self.shared: dict[str, str] = {}  # by an experiment's key

    def of(self, experiment: Experiment) -> float | None:
        """Return the seconds of one seed, or None where no like cell has a record."""
        parts = self.parts_of(experiment)
        return parts and parts.whole

    def parts_of(self, experiment: Experiment) -> "Parts | None":
        dataset = experiment.folder(self.results).parent
        if dataset not in self.took:
            self.took[dataset] = quartiles(experiment.domain, dataset)
        if experiment.key not in self.shared:
            recipe = experiment.full_recipe.model_dump(mode="json")
            names = {"domain": experiment.domain, "dataset": experiment.dataset}
            about = {**names, "loss": experiment.loss.name, "recipe": recipe}
            self.shared[experiment.key] = cost_key(about)
        return self.took[dataset].get(self.shared[experiment.key])


class Parts(NamedTuple):
    """Seconds of a cell, which trains and scores."""

    whole: float
    training: float


def quartiles(domain: str, dataset: Path) -> dict[str, Parts]:
    """Return the lower quartile of the seconds of a dataset's cells by what they share."""
    took: dict[str, list[Parts]] = {}
    keys: dict[str, str] = {}  # of what a cell shares
    for folder in reading.loss_folders(dataset):
        for _, record in reading.list_records(folder):
            if record["status"] == "ok":
                if record["key"] not in keys:
                    recipe = filled(domain, record["recipe"])
                    keys[record["key"]] = cost_key({**record, "recipe": recipe})
                training: Any = record["details"].get("seconds_training", 0.0)
                took.setdefault(keys[record["key"]], []).append(Parts(record["seconds"], training))
    return {name: sorted(some)[(len(some) - 1) // 4] for name, some in took.items()}


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
