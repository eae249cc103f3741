"""A place of a table, and what records say of its settings, from which a search chooses.

Brings no torch.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.records.experiment import ByData, Experiment, by_data
from contrastbench.benchmarks.records.nested import tried_by_all
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.scored import validation_of
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.schema import Row, Setting
from contrastbench.domains.recipe import laid_over
from contrastbench.domains.registry import declaration
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

NO_GRID = "its parameters are the paper's choice and it declares no grid"
EVERY_TRIAL = "every trial diverged"  # why a place has no parameters, and never will


@dataclass(frozen=True)
class Choice:
    """What fills a place, as far as records decide it."""

    # the one that is chosen, or those that folds choose among; the file's while nothing is chosen
    settings: Sequence[Setting]
    tried: Sequence[Setting] = ()  # the trials that choose
    tried_seeds: Sequence[Sequence[int]] = ()  # of each; empty: those of all trials of the column
    more: int = 0  # cells of later stages that follow at most
    ends: Sequence[str] = ()  # parameters whose chosen value is the lowest or highest of all tried
    nested: bool = False  # each fold chooses for itself
    why: str = ""  # nothing is chosen yet; empty: something is

    @property
    def best_of(self) -> int:
        """The number of trials that the setting is the best of; 0: it is no choice of trials."""
        return 0 if self.nested else len(self.tried)

    @property
    def is_open(self) -> bool:
        """Return whether the place will have a result once its trials are done."""
        return self.why not in ("", EVERY_TRIAL, NO_GRID)


class Search(Protocol):
    """A way to choose the setting of a place."""

    def ask(self, scores: "Scores") -> Choice:
        """Return what to try, what is chosen, or why nothing is yet."""


@dataclass(frozen=True)
class Setup:
    """What all places of a column share."""

    column: str
    domain: str
    dataset: str
    recipe: Mapping[str, Any]  # values over the domain's recipe
    small: Mapping[str, Any]  # those of a smoke test, which are over all others
    trial_seeds: Sequence[int]  # where no fold chooses for itself
    seeds: Sequence[int] = ()  # those of a suite, which all have to be there; (): any may be


@dataclass(frozen=True, eq=False)
class Place:
    """A row in a column that can be run here, with all that can fill it."""

    row: Row
    setup: Setup
    loss: LossSpec  # of its cells, with the parameters that every setting has
    recipe: Mapping[str, Any]  # values over the domain's recipe
    setting: Setting  # the file's
    search: Search  # chooses another setting on validation data
    same_as: str = ""  # the row whose cells these are, as both losses are one by algebra
    shift: int = 0  # is added to each shown seed, where the place has seeds of its own

    def experiment(self, setting: Setting) -> Experiment:
        name, params, setup = self.loss.name, setting.params, self.setup
        recipe = laid_over(laid_over(self.recipe, setting.recipe), setup.small)
        return remembered(
            ("experiment", setup.domain, setup.dataset, name, str(params), str(recipe)),
            lambda: Experiment(setup.domain, setup.dataset, LossSpec(name, params), recipe),
        )

    @cached_property
    def work(self) -> Experiment:
        """Return the experiment with the setting of the file."""
        return self.experiment(self.setting)

    def smoke_test(self, setting: Setting) -> Experiment:
        setup = replace(self.setup, small=tiny_recipe(self.setup.domain))
        return replace(self, setup=setup).experiment(setting)

    def combined_records(self, choice: Choice, results: Path, but: Container[int]) -> ByData:
        trials = [self.experiment(setting) for setting in choice.settings]
        only = [seed + self.shift for seed in self.setup.seeds] or None
        return self.shown(nested.chosen_by_data(trials, results, but, only))

    def shown(self, by_data: ByData) -> ByData:
        """Return records by the seeds that are shown in place of the place's own."""
        return {
            data: {seed - self.shift: record for seed, record in records.items()}
            for data, records in by_data.items()
        }


def tiny_recipe(domain: str) -> dict[str, Any]:
    """Return the values that make a training of a domain a smoke test."""
    return {**declaration(domain).tiny, "score_at": ()}


def validation_score(trial: Experiment, record: Record) -> float:
    """Return a record's validation score: percent, larger is better; -inf if it diverged."""
    if record["status"] != "ok":
        return -inf
    validation = validation_of(record)
    if validation is None:
        raise UserError(
            f"{trial.label}, seed {record['seed']}: the record has no details.validation to "
            "choose by: domain "
            f"{trial.domain} does not give one, or the record is older than that and has to be "
            "deleted"
        )
    return validation


@dataclass(frozen=True)
class Scores:
    """The scores of a place's settings in the records of a folder, as far as they are there."""

    place: Place
    results: Path
    seeds: Sequence[int] = ()  # those whose choice a control waits for; (): those of a suite

    def of(self, settings: Sequence[Setting], wanted: Sequence[int] = ()) -> list[float | None]:
        """Return each setting's mean score over seeds, -inf if one diverged, None if one lacks.

        Seeds are those of all trials of the column unless others are wanted. All are of the first
        data that have most of them: data are never mixed.
        """
        trials = [self.place.experiment(setting) for setting in settings]
        seeds = {*(wanted or self.place.setup.trial_seeds)}
        runs = [trial.finished_cells(self.results) for trial in trials]
        cells = {cell: one for run in runs for cell, one in run.items() if cell[1] in seeds}
        scores = [
            [
                fmean([validation_score(trial, run[digest, seed]) for seed in seeds])
                if all((digest, seed) in run for seed in seeds)
                else None
                for trial, run in zip(trials, runs, strict=True)
            ]
            for digest in by_data(cells)
        ]
        return min(scores, key=lambda some: some.count(None), default=[None] * len(trials))

    def chosen_by(self, base: Place) -> Setting | str:
        """Return the setting of another place, or why it is not known yet.

        Where folds choose, it is the one that most of them chose. A seed on which a trial
        failed has no choice, and is waited for no longer.
        """
        what = "chosen by", base, self.results, tuple(self.seeds)
        return remembered(what, lambda: self.choice_of(base))

    def choice_of(self, base: Place) -> Setting | str:
        """Return what `chosen_by` does, which all rows of a column ask."""
        choice = base.search.ask(replace(self, place=base))
        if not choice.nested:
            return choice.why or choice.settings[0]
        by_data = base.combined_records(choice, self.results, base.setup.trial_seeds)
        data, by_seed = next(iter(by_data.items()), ("", {}))
        trials = [base.experiment(setting) for setting in choice.settings]
        places = tried_by_all(trials, self.results)
        tried = {seed - base.shift for of, seed in places if data in ("", of)}
        asked = {*(self.seeds or base.setup.seeds)}
        if not by_seed and asked and asked <= tried:
            return "its baseline has failed with every seed"
        if not by_seed or not asked - by_seed.keys() <= tried:
            have = f"{len(by_seed)} of {len(asked)} seeds" if by_seed else "no seed"
            verb, yet = ("have", "so far") if by_seed else ("has", "yet")
            return f"{have} of its baseline {verb} all {len(trials)} trials {yet}"
        most, _ = nested.frequencies(by_seed.values())[0]
        return choice.settings[most]
