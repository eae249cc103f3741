"""Experiments, which tables show and sweeps run; an experiment with a seed is a cell.

Brings no torch.
"""

import json
from collections.abc import Container, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import reading, schema, store
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.read_cache import remembered, remembered_of
from contrastbench.benchmarks.records.scored import copy_of
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.domains.reading import contents, refuse
from contrastbench.domains.reading import reading as one_line
from contrastbench.domains.recipe import Recipe, laid_over
from contrastbench.domains.registry import check_dataset, declaration, make_recipe
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

ByData = dict[str, dict[int, Record]]  # by data hash, then seed
HOLDERS = dict, list, tuple  # kinds of values that hold others
CELL_FILE = "cell.json"  # in an export: what it is of


@dataclass(frozen=True)
class Experiment:
    """One loss on one dataset with one recipe; missing values take their defaults."""

    domain: str
    dataset: str
    loss: LossSpec  # "none" scores the untrained encoder
    recipe: dict[str, Any]

    @property
    def trained(self) -> bool:
        return self.loss.name != "none"

    @cached_property
    def full_recipe(self) -> Recipe:
        what = "recipe", self.domain, str(self.recipe)  # losses of a column have it in common
        recipe = remembered(what, lambda: make_recipe(self.domain, self.recipe))
        return recipe.beside(self.loss.complete.params)

    @cached_property
    def scored(self) -> "tuple[Experiment, ...]":
        """Return the experiments that one training scores, the one that trains first."""
        names = self.full_recipe.scored_sets or (self.dataset,)
        return tuple(self if n == self.dataset else replace(self, dataset=n) for n in names)

    def check(self) -> None:
        """Raise UserError for a mistake in the recipe, or a name that no record can hold."""
        if self not in self.scored:
            fix = f"add {self.dataset}, or give --dataset {self.scored[0].dataset}"
            sets = ", ".join(work.dataset for work in self.scored)
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
        contents = self.full_recipe.contents(None, self.trained)
        return (named, {**named, **contents}) if contents else (named,)

    @cached_property
    def key(self) -> str:
        recipe, loss = self.full_recipe, self.loss.complete
        identity = (loss.name, loss.params, self.loss.code, recipe.protocol)
        values = recipe.model_dump(mode="json")
        return store.json_digest((self.domain, self.dataset, *identity, values))

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

        Seed and status may be any. A record older than a parameter or recipe key is taken to have
        its default, which must be what was done before. One that was scored after more epochs on
        the way is of the same training.
        """
        if record["loss"] != self.loss.complete.name or not self.is_scored_in(record):
            return False
        return self.training_of(record) in self.trainings

    def is_scored_in(self, record: Record) -> bool:
        """Return whether a record of the same training has the epochs at which this one scores."""
        return {*self.full_recipe.score_at} <= {*record["recipe"].get("score_at", ())}

    def training_of(self, record: Record) -> Hashable:
        """Return what tells a record's training from others of this loss, defaults filled in."""
        # another release of one's own loss is another loss: its records have all parameters
        defaults = {} if self.loss.code else default_params(self.loss.name)
        params = hashable({**defaults, **record["params"]})
        recipe = record["recipe"]  # which losses of a pack have in common
        found = remembered_of(recipe, "recorded", lambda: recipe_of(filled(self.domain, recipe)))
        return record["loss_code"], record["protocol"], params, found

    @cached_property
    def trainings(self) -> tuple[Hashable, ...]:
        """Return what `training_of` says of its own records."""
        own = self.loss.code, self.full_recipe.protocol, hashable(self.loss.complete.params)
        recorded = remembered_of(  # which losses of a column have in common
            *(self.full_recipe, self.trained),
            lambda: dict.fromkeys(map(recipe_of, self.recorded_recipes)),
        )
        return tuple((*own, one) for one in recorded)

    def records(self, results: Path, seed: int | None = None) -> list[Record]:
        """Return its records, of all seeds or of one, including failed runs; do not change them."""
        return remembered_of(self, (results, seed), lambda: self.read_records(results, seed))

    def read_records(self, results: Path, seed: int | None) -> list[Record]:
        where = results, self.domain, self.dataset, self.loss.complete.name, self.loss.code, seed
        cells = remembered(where, lambda: self.cells_in(self.folder(results), seed))
        if not cells:  # as of most losses that a suite has yet to run
            return []
        same = (cell for training in self.trainings for cell in cells.get(training, ()))
        mine = [cell for cell in same if self.is_scored_in(cell.record)]
        mine.sort(key=lambda cell: cell.stored.name)
        return [record for cell in mine for record in cell.records()]

    def cells_in(self, folder: Path, seed: int | None) -> dict[Hashable, list[reading.StoredCell]]:
        """Return the cells in the folder of its loss by training; one record of each is read."""
        cells = reading.cells_in(folder, seed)
        return grouped((self.training_of(cell.record), cell) for cell in cells)

    def finished(self, results: Path, seed: int | None = None) -> Iterator[Record]:
        """Yield its finished records, ok or diverged, of all seeds or of one."""
        records = self.records(results, seed)
        return (record for record in records if record["status"] in store.FINAL_STATUSES)

    def finished_cells(self, results: Path) -> dict[tuple[str, int], Record]:
        return {store.cell_of(record): record for record in self.finished(results)}

    def ok_by_data(self, results: Path, but: Container[int] = ()) -> ByData:
        """Return the ok records by data and seed.

        Numbers of different data are never mixed: a set that was changed, or a converted copy of
        it, has its own. The declared set's come before those of a known copy, then more seeds
        first.
        """
        ok = [record for record in self.finished(results) if record["status"] == "ok"]
        return by_data({store.cell_of(record): record for record in reversed(ok)}, but)

    def ok_by_seed(self, results: Path) -> dict[int, Record]:
        """Return the ok records by seed, on the preferred data."""
        return next(iter(self.ok_by_data(results).values()), {})


@cache
def default_recipe(domain: str) -> dict[str, Any]:
    return make_recipe(domain, {}).model_dump(mode="json")


def filled(domain: str, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return a record's recipe with the settings that are younger than it, at their defaults."""
    return laid_over(default_recipe(domain), recipe)


@cache
def default_params(loss: str) -> dict[str, Any]:
    return LossSpec(loss).complete.params


def recipe_of(values: Mapping[str, Any]) -> Hashable:
    """Return what tells a recipe's trainings from others; equal ones are one object."""
    found = hashable({**values, "score_at": None})
    return remembered(("training", found), lambda: found)


def hashable(value: Any) -> Hashable:
    """Return a value of JSON as one that is equal to those of equal values, and can be a key."""
    if isinstance(value, dict):
        held = {k: hashable(item) for k, item in value.items() if isinstance(item, HOLDERS)}
        return frozenset((value | held).items())
    return tuple(map(hashable, value)) if isinstance(value, HOLDERS) else value


def make_experiment(
    domain: str,
    dataset: str | None,
    loss: LossSpec,
    recipe: dict[str, Any],
    tiny: bool = False,
    target: str | None = None,
) -> Experiment:
    """Make an experiment; the default dataset is the domain's embedded one."""
    about = declaration(domain)
    values = laid_over(about.tiny if tiny else {}, recipe)
    if target is not None:
        other, known = values.setdefault("target", target), about.recipe.model_fields
        refuse(
            f"domain {domain}",
            ("target" not in known, " has no target column: leave --target out"),
            (other != target, f" has --target {target} and recipe target={other}: give one"),
        )
    if dataset is None:
        dataset = next(iter(make_recipe(domain, values).scored_sets), about.default)
    check_dataset(domain, dataset)
    return Experiment(domain, dataset, loss, values)


def by_data(cells: Mapping[tuple[str, int], Record], but: Container[int] = ()) -> ByData:
    """Return records by data: the declared set first, then sets with more seeds; seeds ascend."""
    records: ByData = {}
    for data_hash, seed in sorted(cells):
        if seed not in but:
            records.setdefault(data_hash, {})[seed] = cells[data_hash, seed]

    def rank(item: tuple[str, dict[int, Record]]) -> tuple[bool, int, str]:
        data_hash, by_seed = item
        copied = copy_of(next(iter(by_seed.values()))) is not None
        return copied, -len(by_seed), data_hash

    return dict(sorted(records.items(), key=rank))


@dataclass(frozen=True)
class Cell:
    """An experiment with a seed on data that were read: all that determines a number."""

    experiment: Experiment
    seed: int
    data_hash: str
    contents: dict[str, str]  # hashes in place of the recipe's values that are paths

    @cached_property
    def identity(self) -> Fields:
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


def dataset_of(folder: str) -> str | None:
    """Return the data set that an encoder was trained on, if its export says so."""
    cell = Path(folder) / CELL_FILE
    with one_line(cell, "export it again"):
        return str(json.loads(contents(cell))["dataset"]) if cell.is_file() else None


def holds(folder: Path, record: Fields) -> bool:
    """Return whether the folder is an export of the record's cell."""
    cell = folder / CELL_FILE
    with one_line(cell, "export it again"):
        identity = json.loads(contents(cell)) if cell.is_file() else None
        named = (*store.IDENTITY, "seed")
        return identity is not None and all(identity[name] == record[name] for name in named)
