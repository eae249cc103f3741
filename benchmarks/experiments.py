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
        return {} if self.loss == "none" else {**describe(self.loss).params, **self.params}

    @cached_property
    def full_recipe(self) -> Recipe:
        """The recipe after defaults."""
        return make_recipe(self.domain, self.recipe)

    def finished(self, results: Path) -> Iterator[records.Record]:
        """Its finished records, ok or diverged: same loss, parameters, recipe and protocol.

        A record older than a parameter or recipe key is taken to have its default, which must be what was done before.
        """
        wanted = (self.full_recipe.protocol, self.full_params, self.full_recipe.model_dump(mode="json"))
        known = {} if self.loss == "none" else describe(self.loss).params
        defaults = make_recipe(self.domain, {}).model_dump(mode="json")
        for record in records.read_all(results, self.domain, self.dataset, self.loss):
            found = (record["protocol"], {**known, **record["params"]}, {**defaults, **record["recipe"]})
            if found == wanted:
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
            where = records.folder(results, self.domain, self.dataset, self.loss)
            raise UserError(f"{where}: records of {len(hashes)} different data files: keep those of one data_hash")
        return dict(sorted(by_seed.items()))
