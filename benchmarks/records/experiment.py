"""An experiment is a cell without its seed and data hash: what tables show and sweeps run. Brings no torch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Record
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.errors import UserError
from contrastbench.losses.own import own_code
from contrastbench.losses.registry import complete, get_loss, is_registered

State = Literal["done", "diverged", "failed", "missing"]


class LossIdentity(NamedTuple):
    """A loss as records name it."""

    name: str
    params: dict[str, Any]  # after defaults
    code: str  # sha256 of a user's own files


@dataclass(frozen=True)
class Experiment:
    """One loss with its parameters on one dataset by one recipe; values that are not given have their defaults."""

    domain: str
    dataset: str
    loss: str  # "none" scores the untrained encoder
    params: dict[str, Any]
    recipe: dict[str, Any]
    tuned: tuple[int, ...] = ()  # seeds that parameters were chosen with, which are no results
    undecided: bool = False  # parameters are still to be chosen: there are no results yet

    @cached_property
    def identity(self) -> LossIdentity:
        """The loss as its records name it; one of the user's own has to be imported for that, and brings torch.

        Raises:
            UserError: no such loss or parameter.
        """
        if self.loss == "none":
            return LossIdentity("none", {}, "")
        code = "" if is_registered(self.loss) else own_code(get_loss(self.loss, **self.params))
        return LossIdentity(*complete(self.loss, self.params), code)

    @property
    def full_params(self) -> dict[str, Any]:
        """The loss's parameters after defaults."""
        return self.identity.params

    @cached_property
    def default_params(self) -> dict[str, Any]:
        """The parameters that the loss has if none is given."""
        return {} if self.loss == "none" else complete(self.loss, {})[1]

    @cached_property
    def full_recipe(self) -> Recipe:
        """The recipe after defaults."""
        return make_recipe(self.domain, self.recipe)

    @cached_property
    def recorded_recipes(self) -> tuple[dict[str, Any], ...]:
        """What records may have as the recipe: names as they are if they are the data root's, paths as hashes."""
        named = self.full_recipe.model_dump(mode="json")
        return named, {**named, **self.full_recipe.contents(None, trained=self.loss != "none")}

    @cached_property
    def key(self) -> str:
        """Equal for equal experiments."""
        recipe = self.full_recipe
        work = (
            self.domain,
            self.dataset,
            *self.identity,
            recipe.protocol,
            recipe.model_dump(mode="json"),
        )
        return store.digest(work)

    @property
    def label(self) -> str:
        """For people: domain, dataset, loss and the parameters that are given.

        >>> Experiment("graph", "MUTAG", "adnce", {"mu": 0.7}, {}).label
        'graph MUTAG adnce(mu=0.7)'
        """
        params = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.domain} {self.dataset} {self.loss}" + (f"({params})" if params else "")

    def folder(self, results: Path) -> Path:
        """Where its records stand, among those of the same loss with other parameters or recipes."""
        return store.folder(results, self.domain, self.dataset, self.identity.name)

    def matches(self, record: Record) -> bool:
        """Whether the record is of the same loss, parameters, recipe and protocol, with any seed and status.

        A record older than a parameter or recipe key is taken to have its default, which must be
        what was done before.
        """
        defaults = make_recipe(self.domain, {}).model_dump(mode="json")
        found = (
            record["loss_code"],
            {**self.default_params, **record["params"]},
            record["protocol"],
        )
        wanted = (self.identity.code, self.full_params, self.full_recipe.protocol)
        return found == wanted and {**defaults, **record["recipe"]} in self.recorded_recipes

    def finished(self, results: Path) -> Iterator[Record]:
        """Its finished records, ok or diverged."""
        for record in store.read_all(results, self.domain, self.dataset, self.identity.name):
            if self.matches(record):
                yield record

    def ok_by_seed(self, results: Path) -> dict[int, Record]:
        """One ok record for each seed that has one and was not used to choose parameters, all on the same data.

        Raises:
            UserError: the records come from different data.
        """
        by_seed: dict[int, Record] = {}
        seeds_by_hash: dict[str, list[int]] = {}
        for record in self.finished(results):
            if record["status"] == "ok" and record["seed"] not in self.tuned and not self.undecided:
                by_seed.setdefault(record["seed"], record)
                seeds_by_hash.setdefault(record["data_hash"], []).append(record["seed"])
        if len(seeds_by_hash) > 1:
            found = "; ".join(
                f"{key[:12]}: seeds {sorted(seeds)}" for key, seeds in seeds_by_hash.items()
            )
            fix = (
                "delete those of the data that you no longer mean, or give another --results folder"
            )
            raise UserError(
                f"{self.folder(results)}: records of different data (data_hash {found}): {fix}"
            )
        return dict(sorted(by_seed.items()))


class Task(NamedTuple):
    """An experiment with a seed, and what the records say of it."""

    experiment: Experiment
    seed: int
    state: State


@dataclass(frozen=True)
class Failure:
    """A cell without a result, and why."""

    experiment: Experiment
    seed: int
    reason: str


def survey(work: Iterable[tuple[Experiment, Sequence[int]]], results: Path) -> Iterator[Task]:
    """The tasks of experiments with their seeds, each once; every folder of records is read once."""
    folders: dict[Path, list[Record]] = {}
    seen: set[tuple[str, int]] = set()
    for experiment, seeds in work:
        folder = experiment.folder(results)
        if folder not in folders:
            folders[folder] = [store.read(path) for path in sorted(folder.glob("*.json"))]
        found = [record for record in folders[folder] if experiment.matches(record)]
        for seed in seeds:
            if (experiment.key, seed) not in seen:
                seen.add((experiment.key, seed))
                yield Task(
                    experiment, seed, state({r["status"] for r in found if r["seed"] == seed})
                )


def state(statuses: set[str]) -> State:
    """What records of these statuses make of a task.

    >>> state({"failed", "ok"})
    'done'
    """
    if "ok" in statuses:
        return "done"
    return "diverged" if "diverged" in statuses else "failed" if statuses else "missing"
