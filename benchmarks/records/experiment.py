"""Experiments, which tables show and sweeps run; an experiment with a seed is a cell.

Brings no torch.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import reading, schema, store
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.reading import list_records
from contrastbench.benchmarks.records.scored import copy_of
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import check_dataset, declaration, make_recipe
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

ByData = dict[str, dict[int, Record]]  # by data hash, then seed


@dataclass(frozen=True)
class Experiment:
    """One loss on one dataset with one recipe; missing values take their defaults."""

    domain: str
    dataset: str
    loss: LossSpec  # "none" scores the untrained encoder
    recipe: dict[str, Any]

    @property
    def trained(self) -> bool:
        """Return whether there is a loss to train with."""
        return self.loss.name != "none"

    @cached_property
    def full_recipe(self) -> Recipe:
        """Return the recipe with its defaults for this loss."""
        return make_recipe(self.domain, self.recipe).beside(self.loss.complete.params)

    @cached_property
    def scored(self) -> "tuple[Experiment, ...]":
        """Return the experiments that one training scores, the one that trains first."""
        names = self.full_recipe.scored_sets or (self.dataset,)
        return tuple(self if one == self.dataset else replace(self, dataset=one) for one in names)

    def check(self) -> None:
        """Raise UserError for a mistake in the recipe, or a name that no record can hold."""
        if self not in self.scored:
            fix = f"add {self.dataset}, or give --dataset {self.scored[0].dataset}"
            sets = ", ".join(one.dataset for one in self.scored)
            raise UserError(f"score_on=[{sets}] does not score {self.dataset}: {fix}")
        if self.trained and not self.full_recipe.trainable:
            raise UserError("this recipe has no weights to train: give --loss none")
        recipe = self.full_recipe.model_dump(mode="json")
        loss = {"loss": self.loss.name, "params": self.loss.complete.params}
        schema.check_settings({"dataset": self.dataset, **loss, "recipe": recipe})

    @cached_property
    def recorded_recipes(self) -> tuple[dict[str, Any], ...]:
        """Return the recipes under which records of this experiment may have been stored.

        Names of the data root as they are, paths as hashes.
        """
        named = self.full_recipe.model_dump(mode="json")
        return named, {**named, **self.full_recipe.contents(None, self.trained)}

    @cached_property
    def key(self) -> str:
        """Return a key that is equal for equal experiments."""
        recipe, loss = self.full_recipe, self.loss.complete
        identity = (loss.name, loss.params, self.loss.code, recipe.protocol)
        return store.json_digest(
            (self.domain, self.dataset, *identity, recipe.model_dump(mode="json"))
        )

    @property
    def label(self) -> str:
        """Return a label for people: domain, dataset, loss and given parameters.

        >>> Experiment("graph", "MUTAG", LossSpec("adnce", {"mu": 0.7}), {}).label
        'graph MUTAG adnce(mu=0.7)'
        """
        return f"{self.domain} {self.dataset} {self.loss.label}"

    def folder(self, results: Path) -> Path:
        """Return the folder of its records; other parameters and recipes share it."""
        return store.loss_folder(results, self.domain, self.dataset, self.loss.complete.name)

    def matches(self, record: Record) -> bool:
        """Return whether the record is of the same loss, parameters, recipe and protocol.

        Seed and status may be any, so that records of one key are compared once.

        A record older than a parameter or recipe key is taken to have its default, which must be
        what was done before. One that was scored after more epochs on the way is of the same
        training.
        """
        key = record["key"]
        if key not in self.compared:
            self.compared[key] = self.compare(record)
        return self.compared[key]

    def compare(self, record: Record) -> bool:
        """Compare a record's identity with this experiment."""
        if record["loss"] != self.loss.complete.name:
            return False
        # another release of one's own loss is another loss: its records have all parameters
        defaults = {} if self.loss.code else default_params(self.loss.name)
        params = {**defaults, **record["params"]}
        recorded = (record["loss_code"], params, record["protocol"])
        if recorded != (self.loss.code, self.loss.complete.params, self.full_recipe.protocol):
            return False
        recipe = {**default_recipe(self.domain), **record["recipe"]}
        scored = list(self.full_recipe.score_at)
        if not set(scored) <= set(recipe["score_at"]):
            return False
        return {**recipe, "score_at": scored} in self.recorded_recipes

    @cached_property
    def compared(self) -> dict[str, bool]:
        """Return whether records match, by their keys."""
        return {}

    def records(self, results: Path, seed: int | None = None) -> list[Record]:
        """Return its records, of all seeds or of one, including failed runs; do not change them."""
        return records_of([self], results, seed)

    def finished(self, results: Path, seed: int | None = None) -> Iterator[Record]:
        """Yield its finished records, ok or diverged, of all seeds or of one."""
        records = self.records(results, seed)
        return (record for record in records if record["status"] in store.FINAL_STATUSES)

    def ok_by_data(self, results: Path, but: Container[int] = ()) -> ByData:
        """Return the ok records by data and seed.

        Numbers of different data are never mixed: a set that was changed, or a converted copy of
        it, has its own. The declared set's come before those of a known copy, then more seeds
        first.

        Args:
            results: the folder that holds runs/.
            but: seeds that are left out, such as those that chose the parameters.
        """
        records: ByData = {}
        for record in self.finished(results):
            if record["status"] == "ok" and record["seed"] not in but:
                by_seed = records.setdefault(record["data_hash"], {})
                by_seed.setdefault(record["seed"], record)
        return ordered_by_data(records)

    def ok_by_seed(self, results: Path) -> dict[int, Record]:
        """Return the ok records by seed, on the preferred data."""
        return next(iter(self.ok_by_data(results).values()), {})


@cache
def default_recipe(domain: str) -> dict[str, Any]:
    """Return a domain's default recipe."""
    return make_recipe(domain, {}).model_dump(mode="json")


@cache
def default_params(loss: str) -> dict[str, Any]:
    """Return the default parameters of a registered loss by its name."""
    return LossSpec(loss).complete.params


def records_of(
    trials: Iterable[Experiment], results: Path, seed: int | None = None
) -> list[Record]:
    """Return the records of experiments, by folder of dataset and loss, and by name.

    Those of failed tries too; not to be changed.

    Args:
        trials: the experiments.
        results: the folder that holds runs/.
        seed: that of the records; None: any.
    """
    folders: dict[Path, list[Experiment]] = {}
    for trial in trials:
        folders.setdefault(trial.folder(results), []).append(trial)
    return [record for folder, some in folders.items() for record in records_in(folder, some, seed)]


def records_in(folder: Path, trials: Sequence[Experiment], seed: int | None) -> list[Record]:
    """Return the records of experiments with one loss, by name."""

    def matches(record: Record) -> bool:
        return any(one.matches(record) for one in trials)

    what = (folder, seed, *(trial.key for trial in trials))
    return remembered(what, lambda: [one for _, one in list_records(folder, matches, seed)])


def by_trial(trials: Iterable[Experiment], records: Sequence[Record]) -> list[list[Record]]:
    """Return the records of each experiment."""
    cells = {record["key"]: record for record in records}
    keys = [{key for key, one in cells.items() if trial.matches(one)} for trial in trials]
    return [[record for record in records if record["key"] in some] for some in keys]


def make_experiment(
    domain: str,
    dataset: str | None,
    loss: LossSpec,
    recipe: dict[str, Any],
    tiny: bool = False,
    target: str | None = None,
) -> Experiment:
    """Make an experiment; the default dataset is the domain's embedded one.

    Args:
        domain: its name.
        dataset: its name.
        loss: with its parameters.
        recipe: values over the domain's defaults.
        tiny: a smoke test; the recipe's values are over its.
        target: the column of classes in a table of a user's own.

    Raises:
        UserError: no such domain or kind of data, or it has no target.
    """
    about = declaration(domain)
    values = {**(about.tiny if tiny else {}), **recipe}
    if target is not None:
        if "target" not in about.recipe.model_fields:
            raise UserError(f"domain {domain} has no target column: leave --target out")
        values["target"] = target
    if dataset is None:
        dataset = next(iter(make_recipe(domain, values).scored_sets), about.default)
    check_dataset(domain, dataset)
    return Experiment(domain, dataset, loss, values)


def ordered_by_data(records: ByData) -> ByData:
    """Order records by data: the declared set first, then sets with more seeds; seeds ascend."""

    def rank(item: tuple[str, dict[int, Record]]) -> tuple[bool, int, str]:
        data_hash, by_seed = item
        copied = copy_of(next(iter(by_seed.values()))) is not None
        return copied, -len(by_seed), data_hash

    return {
        key: dict(sorted(by_seed.items())) for key, by_seed in sorted(records.items(), key=rank)
    }


@dataclass(frozen=True)
class Cell:
    """An experiment with a seed on data that were read: all that determines a number."""

    experiment: Experiment
    seed: int
    data_hash: str
    contents: dict[str, str]  # hashes in place of the recipe's values that are paths

    @cached_property
    def identity(self) -> Fields:
        """Return the fields of the record that identify the cell."""
        work, loss = self.experiment, self.experiment.loss.complete
        return {
            "domain": work.domain,
            "dataset": work.dataset,
            "loss": loss.name,
            "loss_code": work.loss.code,
            "params": loss.params,
            "recipe": {**work.full_recipe.model_dump(mode="json"), **self.contents},
            "protocol": work.full_recipe.protocol,
            "data_hash": self.data_hash,
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """Return the key of the cell, which is the same for all seeds."""
        return store.key(self.identity)

    def path(self, results: Path, suffix: str = "") -> Path:
        """Return the path of its record."""
        return store.record_path(results, self.identity, suffix)

    def finished(self, results: Path) -> tuple[Record, Path] | None:
        """Return its record and the record's path, also if it lacks newer keys of the recipe."""
        path = self.path(results)
        if record := reading.find_record(path):
            return record, path
        for record in self.experiment.finished(results, self.seed):
            if record["data_hash"] == self.data_hash:
                return record, store.record_path(results, record)
        return None
