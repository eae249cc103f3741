"""Searches: ways to choose the setting of a place. Ask one, and records tell.

A search is asked with the scores so far. It answers with settings to try, with the one that is
chosen, or with why nothing is chosen yet. The best mean validation score wins, of equal ones the
earlier. Where folds choose each for itself, see `records.nested`, all trials are run with the seeds
that are shown.

The points of a search are Sobol's over temperature, learning rate and a loss's own parameters. The
first is the loss's defaults at the recipe's rate. A loss runs its own formula at every point, in
ranges that it declares for all domains alike. The points of a data set are moved round its ranges
by a shift of its own (Cranley and Patterson 1976). Without one, every set would have a point in the
middle, where recipes were tuned, and a loss that is lucky with its points would be so on all sets
at once. Brings no torch.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from itertools import product
from math import floor, inf, log10, prod
from typing import Any

from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.scores import EVERY_TRIAL, Choice, Place, Scores
from contrastbench.errors import UserError
from contrastbench.losses.ranges import Given, Number, Whole
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import NONE, LossSpec

FINALISTS = 4
Searched = Number | Given
POINTS = 16  # where a file names no number
RATES = Number(low=0, tune=(10**-0.75, 10**0.75), log=True)  # times the recipe's learning rate
RATE = "learning rate"
# 32 times the first points of Sobol's sequence by dimension: importing scipy.stats takes a second
SOBOL = (
    "0 16 24 8 12 28 20 4 6 22 30 14 10 26 18 2 3 19 27 11 15 31 23 7 5 21 29 13 9 25 17 1",
    "0 16 8 24 12 28 4 20 10 26 2 18 6 22 14 30 15 31 7 23 3 19 11 27 5 21 13 29 9 25 1 17",
    "0 16 8 24 20 4 28 12 30 14 22 6 10 26 2 18 15 31 7 23 27 11 19 3 17 1 25 9 5 21 13 29",
    "0 16 8 24 28 12 20 4 14 30 6 22 18 2 26 10 21 5 29 13 9 25 1 17 27 11 19 3 7 23 15 31",
    "0 16 24 8 12 28 20 4 18 2 10 26 30 14 6 22 9 25 17 1 5 21 29 13 27 11 3 19 23 7 15 31",
)


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
class Space:
    """The space of a row's search."""

    loss: LossSpec  # the row's, with the parameters that it is given
    lr: float  # the recipe's
    trials: int = POINTS  # that are tried
    again: bool = False  # they are the next ones, of another search
    name: str = ""  # of the data, which moves the points: alike for all losses on it

    @cached_property
    def settings(self) -> list[Setting]:
        """Return the settings in the order of their points, the defaults at the first."""
        first = self.trials * self.again
        drawn = sobol(len(self.ranges), first + self.trials)[first + 1 :]
        shift = shift_of(self.name, len(self.ranges))
        moved = [[(x + by) % 1 for x, by in zip(point, shift, strict=True)] for point in drawn]
        return [self.setting({}, self.lr), *map(self.at, moved)]

    @cached_property
    def ranges(self) -> Mapping[str, Searched]:
        """Return what is searched: the temperature, the rate, then the loss's own numbers."""
        free = searched_ranges(self.loss)
        warm = {name: one for name, one in free.items() if is_temperature(name)}
        return {**warm, RATE: RATES, **{k: one for k, one in free.items() if k not in warm}}

    @cached_property
    def fixed(self) -> Mapping[str, Any]:
        """Return the parameters that are given or a default, by which ranges may go."""
        return {**describe(self.loss.name).params, **self.loss.params}

    def at(self, shares: Sequence[float]) -> Setting:
        params = {
            name: value_at(share, range_, self.fixed, name)
            for share, (name, range_) in zip(shares, self.ranges.items(), strict=True)
        }
        return self.setting(params, rounded(self.lr * params.pop(RATE)))

    def setting(self, params: Mapping[str, Any], rate: float) -> Setting:
        return Setting({**self.loss.params, **params}, {"lr": rate})


def searched_ranges(loss: LossSpec) -> dict[str, Searched]:
    """Return the ranges of the numbers that are not given and are declared worth a search.

    A choice is another method, such as a variant: it stands at its default, and whoever wants to
    compare it lists it.
    """
    ranges = describe(loss.name).ranges if loss.name != NONE else {}
    return {
        name: range_
        for name, range_ in ranges.items()
        if name not in loss.params
        and name.rpartition(".")[2] not in loss.params
        and (isinstance(range_, Given) or (isinstance(range_, Number) and range_.tune))
    }


def value_at(share: float, range_: Searched, fixed: Mapping[str, Any], name: str) -> Any:
    """Return the value at that share of a range, with two significant digits.

    >>> value_at(0.5, Number(low=0, tune=(0.01, 1), log=True), {}, "temperature")
    0.1
    """
    if isinstance(range_, Given):
        prefix = name.rpartition(".")[0]
        other = f"{prefix}.{range_.other}" if prefix else range_.other
        return value_at(share, range_.ranges[fixed[other]], fixed, name)
    assert range_.tune, "only such are searched"
    low, high = range_.tune
    value = low * (high / low) ** share if range_.log else low + (high - low) * share
    return round(value) if isinstance(range_, Whole) else rounded(value)


def rounded(value: float) -> float:
    return round(value, 1 - floor(log10(abs(value)))) if value else value


def at_temperature(loss: LossSpec, best: LossSpec) -> LossSpec:
    """Return the loss with the temperature of another one, if it has one that is free."""
    if "temperature" not in searched_ranges(loss):
        return loss
    known = best.complete.params.items()
    warm = next((value for name, value in known if is_temperature(name)), 0.0)
    return LossSpec(loss.name, {**loss.params, "temperature": float(warm)})


def is_temperature(name: str) -> bool:
    """Return whether a parameter, of a loss or of a term of one, is a temperature."""
    return name.rpartition(".")[2] == "temperature"


def shift_of(name: str, dimensions: int) -> list[float]:
    """Return the shares of its ranges by which the points of a data set are moved.

    >>> [round(share, 3) for share in shift_of("tabular/letter", 2)], shift_of("", 2)
    ([0.444, 0.743], [0.0, 0.0])
    """
    digests = (sha256(f"{name} {k}".encode()).hexdigest() for k in range(dimensions))
    return [int(digest[:8], 16) / 16**8 * bool(name) for digest in digests]


@cache
def sobol(dimensions: int, count: int) -> list[list[float]]:
    """Return the first points of Sobol's sequence, unscrambled.

    >>> sobol(2, 3)
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    """
    known = [[int(number) / 32 for number in line.split()] for line in SOBOL]
    if count <= len(known[0]) and dimensions <= len(known):
        return [list(point) for point in zip(*known[:dimensions], strict=True)][:count]
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimensions, scramble=False)
    points: list[list[float]] = sequence.random_base2((count - 1).bit_length()).tolist()
    return points[:count]


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
