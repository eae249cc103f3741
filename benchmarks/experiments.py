"""An experiment is a cell without its seed and data hash: what tables show and sweeps run. Brings no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from contrastbench.benchmarks import records
from contrastbench.domains.recipes import Recipe, make_recipe
from contrastbench.losses.errors import UserError
from contrastbench.losses.registry import describe


@dataclass(frozen=True)
class Experiment:
    """One loss with its parameters on one dataset by one recipe; values that are not given have their defaults."""

    domain: str
    dataset: str
    loss: str  # "none" scores the untrained encoder
    params: dict[str, Any]
    recipe: dict[str, Any]

    @cached_property
    def full_params(self) -> dict[str, Any]:
        """The loss's parameters after defaults."""
        return {} if self.loss == "none" else {**self.default_params, **self.params}

    @cached_property
    def default_params(self) -> dict[str, Any]:
        """The parameters that the loss has if none is given."""
        return {} if self.loss == "none" else describe(self.loss).params

    @cached_property
    def full_recipe(self) -> Recipe:
        """The recipe after defaults."""
        return make_recipe(self.domain, self.recipe)

    def folder(self, results: Path) -> Path:
        """Where its records stand, among those of the same loss with other parameters or recipes."""
        return records.folder(results, self.domain, self.dataset, self.loss)

    def matches(self, record: records.Record) -> bool:
        """Whether the record is of the same loss, parameters, recipe and protocol, with any seed and status.

        A record older than a parameter or recipe key is taken to have its default, which must be what was done before.
        """
        defaults = make_recipe(self.domain, {}).model_dump(mode="json")
        found = (record["protocol"], {**self.default_params, **record["params"]}, {**defaults, **record["recipe"]})
        return found == (self.full_recipe.protocol, self.full_params, self.full_recipe.model_dump(mode="json"))

    def finished(self, results: Path) -> Iterator[records.Record]:
        """Its finished records, ok or diverged."""
        for record in records.read_all(results, self.domain, self.dataset, self.loss):
            if self.matches(record):
                yield record

    def ok_by_seed(self, results: Path) -> dict[int, records.Record]:
        """One ok record for each seed that has one, all on the same data.

        Raises:
            UserError: the records come from different data.
        """
        by_seed: dict[int, records.Record] = {}
        for record in self.finished(results):
            if record["status"] == "ok":
                by_seed.setdefault(record["seed"], record)
        hashes = {record["data_hash"] for record in by_seed.values()}
        if len(hashes) > 1:
            raise UserError(
                f"{self.folder(results)}: records of {len(hashes)} different data files: keep those of one data_hash"
            )
        return dict(sorted(by_seed.items()))
