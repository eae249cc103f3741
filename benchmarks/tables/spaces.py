"""The points of a search: Sobol's over temperature, learning rate and a loss's own parameters.

The first is the loss's defaults at the recipe's rate. A loss runs its own formula at every point,
in ranges that it declares for all domains alike. The points of a data set are moved round its
ranges by a shift of its own (Cranley and Patterson 1976). Without one, every set would have a point
in the middle, where recipes were tuned, and a loss that is lucky with its points would be so on all
sets at once. Brings no torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from contrastbench.benchmarks.tables import hypercube
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.losses.ranges import TEMPERATURE, Choice, Number, Range
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import LossSpec

POINTS = 16  # where a file names no number
RATES = Number(low=0, tune=(10**-0.75, 10**0.75), log=True)  # times the recipe's learning rate
RATE = "learning rate"
# papers choose 0.02 (sentences) to 1; older suites search a narrower one by their file
TEMPERATURES = Number(low=0, tune=(0.02, 1), log=True)
# 32 times the first points of Sobol's sequence by dimension: importing scipy.stats takes a second
SOBOL = (
    "0 16 24 8 12 28 20 4 6 22 30 14 10 26 18 2 3 19 27 11 15 31 23 7 5 21 29 13 9 25 17 1",
    "0 16 8 24 12 28 4 20 10 26 2 18 6 22 14 30 15 31 7 23 3 19 11 27 5 21 13 29 9 25 1 17",
    "0 16 8 24 20 4 28 12 30 14 22 6 10 26 2 18 15 31 7 23 27 11 19 3 17 1 25 9 5 21 13 29",
    "0 16 8 24 28 12 20 4 14 30 6 22 18 2 26 10 21 5 29 13 9 25 1 17 27 11 19 3 7 23 15 31",
    "0 16 24 8 12 28 20 4 18 2 10 26 30 14 6 22 9 25 17 1 5 21 29 13 27 11 3 19 23 7 15 31",
)


@dataclass(frozen=True)
class Space:
    """The space of a row's search.

    Args:
        loss: the row's loss with the parameters that it is given.
        lr: the recipe's learning rate.
        trials: how many points are tried.
        again: whether they are the next ones, of another search.
        name: of the data, which moves the points; all losses on it share their temperatures and
            rates.
    """

    loss: LossSpec
    lr: float
    trials: int = POINTS
    again: bool = False
    name: str = ""

    @cached_property
    def settings(self) -> list[Setting]:
        """Return the settings in the order of their points, the defaults at the first."""
        first = self.trials * self.again
        drawn = sobol(len(self.ranges), first + self.trials)[first + 1 :]
        shift = shift_of(self.name, len(self.ranges))
        moved = [[(x + by) % 1 for x, by in zip(point, shift, strict=True)] for point in drawn]
        return [self.setting({}, self.lr), *map(self.at, moved)]

    @cached_property
    def ranges(self) -> Mapping[str, Range]:
        """Return what is searched: the temperature, the rate, then the loss's own numbers."""
        free = hypercube.searched_ranges(self.loss)
        warm = {
            name: TEMPERATURES if one == TEMPERATURE else one
            for name, one in free.items()
            if is_temperature(name)
        }
        own = {name: one for name, one in free.items() if name not in warm}
        numbers = {name: one for name, one in own.items() if not isinstance(one, Choice)}
        return {**warm, RATE: RATES, **numbers}

    def at(self, shares: Sequence[float]) -> Setting:
        """Return the setting at shares of the ranges."""
        fixed = {**describe(self.loss.name).params, **self.loss.params}
        params = {
            name: hypercube.value_at(share, range_, fixed, name)
            for share, (name, range_) in zip(shares, self.ranges.items(), strict=True)
        }
        return self.setting(params, hypercube.rounded(self.lr * params.pop(RATE)))

    def setting(self, params: Mapping[str, object], rate: float) -> Setting:
        """Return a setting of the loss at a learning rate."""
        return Setting({**self.loss.params, **params}, self.loss.name, {"lr": rate})


def has_own(loss: LossSpec) -> bool:
    """Return whether a loss has free parameters besides its temperature."""
    return not all(map(is_temperature, hypercube.searched_ranges(loss)))


def temperature_range(loss: LossSpec) -> Number | None:
    """Return the range in which a loss's temperature is free; None: it has none, or is given."""
    free = hypercube.searched_ranges(loss)
    named = (r for name, r in free.items() if is_temperature(name) and isinstance(r, Number))
    return next(named, None)


def at_temperature(loss: LossSpec, best: Setting) -> LossSpec:
    """Return the loss with the temperature of a setting, if it has one that is free."""
    if not temperature_range(loss):
        return loss
    chosen = LossSpec(best.loss or "", best.params).complete.params
    warm = next((value for name, value in chosen.items() if is_temperature(name)), 0.0)
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
