"""Searches: ways to choose the setting of a place. Ask one, and records tell.

A search is asked with the scores so far. It answers with settings to try, with the one that is
chosen, or with why nothing is chosen yet. The best mean validation score wins, of equal ones the
earlier. Where folds choose each for itself, see `records.nested`, all trials are run with the seeds
that are shown. Brings no torch.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf, prod
from typing import Any

from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.scores import EVERY_TRIAL, Choice, Place, Scores
from contrastbench.benchmarks.tables.spaces import Space, at_temperature
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

FINALISTS = 4


@dataclass(frozen=True)
class Fixed:
    """The setting that a file gives, or the reason why it gives none to choose."""

    setting: Setting
    why: str = ""

    def ask(self, scores: Scores) -> Choice:
        return Choice([self.setting], why=self.why)


def best_setting(own: Setting, tried: Sequence[Setting], scores: Sequence[float | None]) -> Choice:
    """Return the best of the settings, or the given one and how many trials are done."""
    done = [score for score in scores if score is not None]
    if len(done) < len(tried):
        count = len(tried)
        why = f"{len(done)} of {count} trials are done" if count > 1 else "its trial is not done"
        return Choice([own], tried, why=why)
    if max(done) == -inf:
        return Choice([own], tried, why=EVERY_TRIAL)
    return Choice([tried[done.index(max(done))]], tried)


@dataclass(frozen=True)
class Grid:
    """So many settings of a row's grid, drawn at random as papers do: always the same ones."""

    name: str  # of table and row, for people
    params: Mapping[str, Any]
    values: Mapping[str, list[Any]]
    count: int

    @cached_property
    def settings(self) -> list[Setting]:
        size = size_of(self.values)
        if size < self.count:
            raise UserError(f"{self.name} has {size} settings for {self.count} trials: extend it")
        drawn = draw_settings(self.values, self.count)
        return [Setting({**self.params, **setting}) for setting in drawn]


def size_of(grid: Mapping[str, Sequence[Any]]) -> int:
    """Return how many settings a grid has; none where it names no parameter.

    >>> size_of({"mu": [0.5, 1.0], "sigma": [1.0]}), size_of({})
    (2, 0)
    """
    return prod(map(len, grid.values())) if grid else 0


def draw_settings(grid: Mapping[str, Sequence[Any]], count: int) -> list[dict[str, Any]]:
    """Draw different settings, with each parameter's values about equally often.

    A Latin hypercube on the grid: a plain draw of 5 from 80 leaves most values of most parameters
    untried.
    """
    everything = list(product(*grid.values()))
    rng, drawn = random.Random(0), everything
    if count < len(everything):
        tries = (
            list(zip(*(balanced_draw(values, count, rng) for values in grid.values()), strict=True))
            for _ in range(100)
        )
        drawn = next(
            (some for some in tries if len(set(map(str, some))) == count),
            rng.sample(everything, count),
        )
    return [dict(zip(grid, values, strict=True)) for values in drawn]


def balanced_draw(values: Sequence[Any], count: int, rng: random.Random) -> list[Any]:
    """So many of the values in random order, none more often than one other by more than one."""
    whole, rest = divmod(count, len(values))
    some = [*values] * whole + rng.sample(list(values), rest)
    rng.shuffle(some)
    return some


@dataclass(frozen=True)
class BestOf:
    """The best setting of a grid."""

    given: Setting
    grid: Grid

    def ask(self, scores: Scores) -> Choice:
        tried = self.grid.settings
        return best_setting(self.given, tried, scores.of(tried))


@dataclass(frozen=True)
class Finalists:
    """Points with the first seed, the best with the further ones too, and the best of these."""

    given: Setting
    space: Space
    seeds: Sequence[int]

    def ask(self, scores: Scores) -> Choice:
        first, further = self.seeds[:1], self.seeds[1:]
        tried = self.space.settings
        known = scores.of(tried, first)
        count = min(FINALISTS, len(tried)) if further else 0
        choice = best_setting(self.given, tried, known)
        choice = replace(choice, tried_seeds=[first] * len(tried))
        if choice.why or not count:
            return replace(choice, more=count * len(further) * choice.is_open)
        best = [tried[k] for k in ranked_first([one for one in known if one is not None], count)]
        final = best_setting(self.given, best, scores.of(best, self.seeds))
        seeds = [self.seeds if one in best else first for one in tried]
        ends = [] if final.why else at_ends(final.settings[0], tried)
        return replace(final, tried=tried, tried_seeds=seeds, ends=ends)


def ranked_first(scores: Sequence[float], count: int) -> list[int]:
    """Return the positions of the best scores, of equal ones the earlier.

    Those of -inf are left out, unless there are no others.

    >>> ranked_first([70.0, 80.0, 80.0, 60.0], 2), ranked_first([1.0, -inf], 2)
    ([1, 2], [0])
    """
    order = sorted(range(len(scores)), key=lambda k: -scores[k])[:count]
    return [k for k in order if scores[k] > -inf] or order


def at_ends(chosen: Setting, tried: Sequence[Setting]) -> list[str]:
    """Return the parameters whose chosen value is the lowest or highest of all tried."""
    every = [{**one.params, **one.recipe} for one in tried]
    values = {name: [one[name] for one in every if name in one] for name in every[-1]}
    own = {**chosen.params, **chosen.recipe}
    return [name for name in values if own.get(name) in (min(values[name]), max(values[name]))]


@dataclass(frozen=True)
class Nested:
    """Each fold chooses among the settings without what it is scored on."""

    trials: Grid | Space

    def ask(self, scores: Scores) -> Choice:
        """Return all settings: a cell of each is run, and each fold has its own choice."""
        return Choice(self.trials.settings, self.trials.settings, nested=True)


@dataclass(frozen=True)
class Beside:
    """A loss at the temperature and learning rate that the baseline chose."""

    given: Setting
    base: Place
    loss: LossSpec

    def ask(self, scores: Scores) -> Choice:
        theirs = scores.chosen_by(self.base)
        if isinstance(theirs, str):
            why = f"{self.base.row.name}: {theirs} (bench merge --shipped adds what ships)"
            return Choice([self.given], why=why)
        loss = at_temperature(self.loss, LossSpec(self.base.loss.name, theirs.params))
        return Choice([Setting(loss.params, recipe=theirs.recipe)])


@dataclass(frozen=True)
class Control:
    """The baseline's setting, but for what makes it a control."""

    given: Setting  # the file's, with the control's values over the recipe
    base: Place
    # over the baseline's parameters; None: its loss is its own, which takes the recipe alone
    params: Mapping[str, Any] | None

    def ask(self, scores: Scores) -> Choice:
        theirs = scores.chosen_by(self.base)
        if isinstance(theirs, str):
            return Choice([self.given], why=theirs)
        recipe = {**theirs.recipe, **self.given.recipe}
        if self.params is None:
            return Choice([replace(self.given, recipe=recipe)])
        return Choice([replace(theirs, params={**theirs.params, **self.params}, recipe=recipe)])
