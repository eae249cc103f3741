"""The shared points: settings of temperature and learning rate that every row of a column tries.

Point k lies at the shares k a and k b (mod 1) of the two ranges: any run of such points covers
both evenly, every second one alone does too, and no value comes back. Rates span a decade around
the recipe's. Each point also has values of a loss's own parameters. Where it becomes another loss,
each point has that loss, whose cells all rows share, and every second one its own settings beside
it: so no search of a loss is poorer than that of its limit. Brings no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import e

from contrastbench.benchmarks.tables import hypercube
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.spaces import has_own, temperature_range
from contrastbench.losses.ranges import Number
from contrastbench.losses.spec import LossSpec

BUDGET = 8  # points, where a file names no number
BEST = 3  # settings whose mean is a seed's number
STEPS = (5**0.5 - 1) / 2, e - 2  # a and b: of the steps tried, few cover so well
DECADE = Number(low=0, tune=(10**-0.5, 10**0.5), log=True)  # times the recipe's learning rate


@dataclass(frozen=True)
class PointSpace:
    """The loss of a row, the one that it becomes, the recipe's rate, and how many points it has."""

    loss: LossSpec
    limit: LossSpec | None
    lr: float
    trials: int = BUDGET

    @property
    def base(self) -> LossSpec:
        """The simplest loss that it becomes, or itself."""
        return self.limit or self.loss


@dataclass(frozen=True)
class Points:
    """The settings of a row at the shared points.

    Args:
        space: the loss, the one that it becomes, the rate, and how many points there are.
        temperature: the range of all losses in the column; (): each loss's own.
        again: whether the points are the next ones, of another search.
    """

    space: PointSpace
    temperature: Sequence[float] = ()
    again: bool = False

    @cached_property
    def settings(self) -> list[Setting]:
        """Return the settings in the order of their points, at each the simpler loss first."""
        first = 1 + self.space.trials * self.again
        return [
            self.at(loss, first + k) for k in range(self.space.trials) for loss in self.losses(k)
        ]

    def losses(self, k: int) -> list[LossSpec]:
        """Return the losses at the k-th point, of which one counts."""
        loss, limit, trials = self.space.loss, self.space.limit, self.space.trials
        if not has_own(loss):
            return [self.space.base]
        own = own_params(loss, trials // 2 if limit else trials)
        if not limit:
            return [with_params(loss, own, k)]
        return [limit, *([with_params(loss, own, k // 2)] * (k % 2))]

    def at(self, loss: LossSpec, k: int) -> Setting:
        """Return a loss at a point."""
        warm, fast = (k * step % 1 for step in STEPS)
        range_ = temperature_range(loss)
        if range_ and self.temperature:
            low, high = self.temperature
            range_ = replace(range_, tune=(low, high))
        temperature = {"temperature": hypercube.value_at(warm, range_, {}, "")} if range_ else {}
        rate = hypercube.rounded(self.space.lr * hypercube.value_at(fast, DECADE, {}, ""))
        return Setting({**loss.params, **temperature}, loss.name, {"lr": rate}, k)


def own_params(loss: LossSpec, count: int) -> list[hypercube.Params]:
    """Return the defaults and points of a loss's ranges besides its temperature."""
    if not has_own(loss):
        return [{}]
    kept = {"temperature": 1.0} if temperature_range(loss) else {}
    bare = LossSpec(loss.name, {**loss.params, **kept})
    return hypercube.hypercube_settings(bare, max(count, 2)) or [{}]


def with_params(loss: LossSpec, own: Sequence[hypercube.Params], k: int) -> LossSpec:
    """Return a loss with the k-th of its own parameters, from the beginning after the last."""
    return LossSpec(loss.name, {**loss.params, **own[k % len(own)]})
