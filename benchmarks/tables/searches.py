"""A place of a table, and the search that chooses its setting: ask it, and records tell.

A search is asked with the scores so far. It answers with settings to try, with the one that is
chosen, or with why nothing is chosen yet. The best mean validation score wins, of equal ones the
earlier. Where seeds or folds choose each for itself, see `records.nested`, all trials are run with
the seeds that are shown. Brings no torch.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Protocol

from contrastbench.benchmarks.records.experiment import ByData, Experiment
from contrastbench.benchmarks.records.nested import chosen_by_data
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.tables import hypercube, staged
from contrastbench.benchmarks.tables.hypercube import draw_settings, size_of
from contrastbench.benchmarks.tables.schema import Row, Setting
from contrastbench.benchmarks.tables.scores import most_chosen, scores_of
from contrastbench.domains.registry import declaration
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

NO_GRID = "its parameters are the paper's choice and it declares no grid"
EVERY_TRIAL = "every trial diverged"  # why a place has no parameters, and never will


@dataclass(frozen=True)
class Choice:
    """What fills a place, as far as records decide it.

    Args:
        settings: the one that is chosen, or those that each seed or fold chooses among; the file's
            while nothing is chosen.
        tried: the trials that choose.
        more: how many trials of later stages follow at most.
        nested: over how many settings the mean of a seed or fold is that chooses for itself.
        why: the reason why nothing is chosen yet; empty: something is.
        distinct: how many different validation scores the trials have, where these choose.
    """

    settings: Sequence[Setting]
    tried: Sequence[Setting] = ()
    more: int = 0
    nested: int = 0
    why: str = ""
    distinct: int = 0

    @property
    def best_of(self) -> int:
        """The number of trials that the setting is the best of; 0: it is no choice of trials."""
        return 0 if self.nested else len(self.tried)

    @property
    def scores_alike(self) -> bool:
        """Return whether most trials have the score of another one: they tried next to nothing."""
        return 0 < 2 * self.distinct <= self.best_of

    @property
    def is_open(self) -> bool:
        """Return whether the place will have a result once its trials are done."""
        return self.why not in ("", EVERY_TRIAL, NO_GRID)


class Search(Protocol):
    """A way to choose the setting of a place."""

    def ask(self, scores: "Scores") -> Choice:
        """Return what to try, what is chosen, or why nothing is yet."""


class Trials(Protocol):
    """Settings that no score decides."""

    @property
    def settings(self) -> Sequence[Setting]:
        """Return settings that seeds or folds can choose among."""


@dataclass(frozen=True)
class Setup:
    """What all places of a column share.

    Args:
        column: its name.
        domain: that of its data.
        dataset: its data.
        recipe: values over the domain's recipe.
        small: those of a smoke test, which are over all others.
        trial_seeds: seeds of trials where no seed or fold chooses for itself.
        seeds: those of a suite, which all have to be there; (): any may be.
        temperature: the range that all losses search; (): each its own.
    """

    column: str
    domain: str
    dataset: str
    recipe: Mapping[str, Any]
    small: Mapping[str, Any]
    trial_seeds: Sequence[int]
    seeds: Sequence[int] = ()
    temperature: Sequence[float] = ()


@dataclass(frozen=True)
class Fixed:
    """The setting that a file gives, or the reason why it gives none to choose."""

    setting: Setting
    why: str = ""

    def ask(self, scores: "Scores") -> Choice:
        """Return the only setting there is, as chosen."""
        return Choice([self.setting], why=self.why)


@dataclass(frozen=True)
class Place:
    """A row in a column that can be run here, with all that can fill it.

    Args:
        row: as the file has it.
        setup: what the places of its column share.
        loss: the loss of its cells, with the parameters that every setting has.
        recipe: values over the domain's recipe.
        setting: the file's.
        search: the way in which another setting is chosen on validation data.
        same_as: the row whose cells these are, as both losses are one by algebra; or "".
        shift: is added to each shown seed, where the place has seeds of its own.
    """

    row: Row
    setup: Setup
    loss: LossSpec
    recipe: Mapping[str, Any]
    setting: Setting
    search: Search = field(default=Fixed(Setting({})))
    same_as: str = ""
    shift: int = 0

    @property
    def column(self) -> str:
        """Return the name of its column."""
        return self.setup.column

    def experiment(self, setting: Setting) -> Experiment:
        """Return the experiment that fills the place with a setting."""
        loss = LossSpec(setting.loss or self.loss.name, setting.params)
        recipe = {**self.recipe, **setting.recipe, **self.setup.small}
        work = Experiment(self.setup.domain, self.setup.dataset, loss, recipe)
        return remembered(("experiment", str(work)), lambda: work)

    @cached_property
    def work(self) -> Experiment:
        """Return the experiment with the setting of the file."""
        return self.experiment(self.setting)

    @property
    def smoke_test(self) -> Experiment:
        """Return the experiment of a smoke test, with the setting of the file."""
        setup = replace(self.setup, small=tiny_recipe(self.setup.domain))
        return replace(self, setup=setup).work


def tiny_recipe(domain: str) -> dict[str, Any]:
    """Return the values that make a training of a domain a smoke test."""
    return {**declaration(domain).tiny, "score_at": ()}


@dataclass(frozen=True)
class Scores:
    """The scores of a place's settings in the records of a folder, as far as they are there.

    Args:
        place: the row in a column.
        results: the folder that holds runs/.
        seeds: those whose choice a control waits for; (): those of a suite.
    """

    place: Place
    results: Path
    seeds: Sequence[int] = ()

    def of(self, settings: Sequence[Setting]) -> list[float | None]:
        """Return each setting's score, -inf if it diverged, None while it is not known.

        Raises:
            UserError: a record has no validation score.
        """
        tried = [self.place.experiment(setting) for setting in settings]
        return scores_of(tried, self.place.setup.trial_seeds, self.results)

    def chosen_by(self, base: Place) -> Setting | str:
        """Return the setting of another place, or why it is not known yet.

        Where seeds or folds choose, it is the one that most of them chose.
        """
        found = base.search.ask(replace(self, place=base))
        if not found.nested:
            return found.why or found.settings[0]
        tried = [base.experiment(one) for one in found.settings]
        asked = self.seeds or base.setup.seeds
        records = chosen_records(base, tried, found.nested, self.results, base.setup.trial_seeds)
        return most_chosen(tried, found.settings, next(iter(records.values()), {}), asked)


def chosen_records(
    place: Place, tried: Sequence[Experiment], best: int, results: Path, but: Container[int]
) -> ByData:
    """Return the combined records of a place whose seeds or folds choose, by its shown seeds."""
    only = [seed + place.shift for seed in place.setup.seeds] or None
    found = chosen_by_data(tried, results, but, only, best)
    return {
        data: {seed - place.shift: record for seed, record in records.items()}
        for data, records in found.items()
    }


def best_setting(
    given: Setting, tried: Sequence[Setting], found: Sequence[float | None], more: int = 0
) -> Choice:
    """Return the best of the settings, or the given one and how many trials are done."""
    done = [score for score in found if score is not None]
    if len(done) < len(tried):
        why = f"{len(done)} of {len(tried) + more} trials are done"
        return Choice([given], tried, more, why=why)
    if max(done) == -inf:
        return Choice([given], tried, why=EVERY_TRIAL)
    return Choice([tried[done.index(max(done))]], tried, distinct=len({*done}))


@dataclass(frozen=True)
class Grid:
    """So many settings of a row's grid, drawn at random."""

    name: str  # of table and row, for people
    params: Mapping[str, Any]
    values: Mapping[str, list[Any]]
    count: int

    @cached_property
    def settings(self) -> list[Setting]:
        """Return the settings that are tried.

        Raises:
            UserError: the grid has fewer.
        """
        size = size_of(self.values)
        if size < self.count:
            raise UserError(f"{self.name} has {size} settings for {self.count} trials: extend it")
        drawn = draw_settings(self.values, self.count)
        return [Setting({**self.params, **setting}) for setting in drawn]


@dataclass(frozen=True)
class Hypercube:
    """A loss's defaults and points of the ranges that it declares."""

    loss: LossSpec
    count: int

    @cached_property
    def settings(self) -> list[Setting]:
        """Return the settings that are tried."""
        points = hypercube.hypercube_settings(self.loss, self.count)
        return [Setting({**self.loss.params, **point}) for point in points]


@dataclass(frozen=True)
class BestOf:
    """The best of settings that no score decides."""

    given: Setting
    trials: Trials

    def ask(self, scores: Scores) -> Choice:
        """Return the best of the settings."""
        tried = self.trials.settings
        return best_setting(self.given, tried, scores.of(tried))


@dataclass(frozen=True)
class Staged:
    """Stages, each of which follows from the scores of those before it, see `staged`."""

    given: Setting
    space: staged.Space

    @property
    def settings(self) -> list[Setting]:
        """Return settings that no score decides."""
        return staged.of_folds(self.space)

    def ask(self, scores: Scores) -> Choice:
        """Return the best setting of all stages, or the trials of the stages so far."""
        tried = staged.first_stage(self.space)
        for stage in (staged.second_stage, staged.third_stage):
            found = scores.of(tried)
            done = [score for score in found if score is not None]
            if len(done) < len(tried):
                return best_setting(self.given, tried, found, self.space.trials - len(tried))
            tried = [*tried, *stage(self.space, tried, done.index(max(done)))]
        return best_setting(self.given, tried, scores.of(tried))


@dataclass(frozen=True)
class Nested:
    """Each seed, or fold, chooses among the settings without what it is scored on.

    Args:
        trials: the settings.
        best: over how many settings each has its mean.
    """

    trials: Trials
    best: int = 1

    def ask(self, scores: Scores) -> Choice:
        """Return all settings: a cell of each is run, and each seed or fold has its own choice."""
        return Choice(self.trials.settings, self.trials.settings, nested=self.best)


@dataclass(frozen=True)
class Beside:
    """A loss at the temperature and learning rate that the baseline chose."""

    given: Setting
    base: Place
    loss: LossSpec

    def ask(self, scores: Scores) -> Choice:
        """Return the loss at the baseline's setting."""
        found = scores.chosen_by(self.base)
        if isinstance(found, str):
            why = f"{self.base.row.name}: {found} (bench merge --shipped adds what ships)"
            return Choice([self.given], why=why)
        theirs = replace(found, loss=found.loss or self.base.row.loss)
        loss = staged.at_temperature(self.loss, theirs)
        return Choice([Setting(loss.params, recipe=found.recipe)])


@dataclass(frozen=True)
class Control:
    """The baseline's setting, but for what makes it a control.

    Args:
        given: the file's setting, with the control's values over the recipe.
        base: the baseline.
        params: values over the baseline's parameters; None: the control has a loss of its own,
            which takes the recipe alone.
    """

    given: Setting
    base: Place
    params: Mapping[str, Any] | None

    def ask(self, scores: Scores) -> Choice:
        """Return the baseline's setting with what the control changes."""
        found = scores.chosen_by(self.base)
        if isinstance(found, str):
            return Choice([self.given], why=found)
        recipe = {**found.recipe, **self.given.recipe}
        if self.params is None:
            return Choice([replace(self.given, recipe=recipe)])
        return Choice([replace(found, params={**found.params, **self.params}, recipe=recipe)])
