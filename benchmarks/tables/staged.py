"""The staged search: temperature at the limit, then the loss's own parameters, then the rate.

Every row of a column has the same number of trials. The first stage tries temperatures of the
simplest loss that the row's loss becomes, or of the loss itself at its defaults. Those trials are
the simpler loss's own cells, so they run once for all rows that share it. The second stage tries
the loss's own parameters at the best temperature; a loss that has none gets temperatures near the
best. The third stage halves and doubles the learning rate of the best trial. Of equal trials the
earlier one is chosen, so the simpler loss is. Brings no torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contrastbench.benchmarks.tables import hypercube
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.losses.ranges import Number, Range
from contrastbench.losses.spec import LossSpec

BUDGET = 12  # trials of each row, where a file names no number
RATE_FACTORS = (0.5, 2.0)  # times the learning rate, in the third stage
MIN_RATE_TRIALS = 6  # trials from which on there is a third stage


@dataclass(frozen=True)
class Space:
    """The space that a row's search covers.

    Args:
        loss: the row's loss with the parameters that it is given.
        limit: the simplest loss that it becomes; None: it becomes no other.
        lr: the recipe's learning rate.
        trials: how many settings are tried.
    """

    loss: LossSpec
    limit: LossSpec | None
    lr: float
    trials: int = BUDGET

    @property
    def base(self) -> LossSpec:
        """The loss whose temperatures are tried first."""
        return self.limit or self.loss

    @property
    def rates(self) -> int:
        """The number of trials of the third stage."""
        return len(RATE_FACTORS) if self.trials >= MIN_RATE_TRIALS else 0


def of_folds(space: Space) -> list[Setting]:
    """Return settings that no score decides, for folds that choose each for itself."""
    tried = first_stage(space)
    if not has_own(space.loss):
        return tried + temperatures_between(space)
    return tried + staged_points(space, space.loss, space.trials - len(tried))


def first_stage(space: Space) -> list[Setting]:
    """Return the limit's default and temperatures that are spread over its range."""
    count = (space.trials + 1) // 2 - 1
    shares = [(i + 0.5) / count for i in range(count)]
    return distinct_settings([setting_of(space.base), *temperature_settings(space.base, shares)])


def temperatures_between(space: Space) -> list[Setting]:
    """Return temperatures between those of the first stage, from end to end of the range."""
    tried = first_stage(space)
    count, between = space.trials - len(tried), list[Setting]()
    for larger in range(count + 1):  # some may be tried already
        shares = [i / max(1, count + larger - 1) for i in range(count + larger)]
        between = distinct_settings([*tried, *temperature_settings(space.base, shares)])[
            len(tried) : space.trials
        ]
        if len(between) == count:
            break
    return between


def second_stage(space: Space, tried: Sequence[Setting], best: int) -> list[Setting]:
    """Return points of the loss's own ranges at the best temperature, its defaults first."""
    count = space.trials - space.rates - len(tried)
    if not has_own(space.loss):
        return temperatures_near(space, tried, best, count)
    return staged_points(space, at_temperature(space.loss, tried[best]), count)


def staged_points(space: Space, loss: LossSpec, count: int) -> list[Setting]:
    """Return a loss's defaults, unless they are tried already, and points of its ranges.

    Points that repeat the defaults are made good by those of a larger hypercube.
    """
    known = space.limit is None
    for larger in range(known, known + 4):
        points = hypercube.hypercube_settings(loss, count + larger)[known : count + known]
        if len(points) == count:
            break
    return [setting_of(loss, point) for point in points]


def has_own(loss: LossSpec) -> bool:
    """Return whether a loss has free parameters besides its temperature."""
    return any(name.rpartition(".")[2] != "temperature" for name in hypercube.searched_ranges(loss))


def third_stage(space: Space, tried: Sequence[Setting], best: int) -> list[Setting]:
    """Return the best setting with other learning rates."""
    rates = [rate * space.lr for rate in RATE_FACTORS[: space.rates]]
    return [replace(tried[best], recipe={"lr": rate}) for rate in rates]


def temperatures_near(
    space: Space, tried: Sequence[Setting], best: int, count: int
) -> list[Setting]:
    """Return temperatures between the best one and its neighbours, half of them on each side."""
    range_ = temperature_range(space.base)
    if not range_:
        return []
    values = sorted({value_of(setting) for setting in tried})
    middle = value_of(tried[best])
    low = max((v for v in values if v < middle), default=min(range_.tune[0], middle))
    high = min((v for v in values if v > middle), default=max(range_.tune[1], middle))
    below = count // 2 if low < middle < high else count * (low < middle)
    sides = ((low, middle, below), (middle, high, count - below))
    near = [
        setting_of(space.base, {"temperature": hypercube.value_at(i / (n + 1), part, {}, "")})
        for a, b, n in sides
        for part in [replace(range_, tune=(a, b))]
        for i in range(1, n + 1)  # the ends are left out
    ]
    return distinct_settings([*tried, *near])[len(tried) :]


def temperature_settings(loss: LossSpec, shares: Iterable[float]) -> list[Setting]:
    """Return settings of a loss at shares of its range of temperatures; none without a range."""
    range_ = temperature_range(loss)
    values = [hypercube.value_at(share, range_, {}, "") for share in shares] if range_ else []
    return [setting_of(loss, {"temperature": value}) for value in values]


def temperature_range(loss: LossSpec) -> Any:
    """Return the range in which a loss's temperature is free; None: it has none, or is given."""
    free: dict[str, Range] = hypercube.searched_ranges(loss)
    named = (r for name, r in free.items() if name.rpartition(".")[2] == "temperature")
    return next((r for r in named if isinstance(r, Number)), None)


def at_temperature(loss: LossSpec, best: Setting) -> LossSpec:
    """Return the loss with the temperature of a setting, if it has one that is free."""
    if not temperature_range(loss):
        return loss
    return LossSpec(loss.name, {**loss.params, "temperature": value_of(best)})


def value_of(setting: Setting) -> float:
    """Return the temperature of a setting, which may be its loss's default."""
    loss = LossSpec(setting.loss or "", setting.params).complete
    named = (v for key, v in loss.params.items() if key.rpartition(".")[2] == "temperature")
    return float(setting.params.get("temperature", next(named, 0.0)))


def setting_of(loss: LossSpec, params: dict[str, Any] | None = None) -> Setting:
    """Return a loss with further parameters as a setting."""
    return Setting({**loss.params, **(params or {})}, loss.name)


def distinct_settings(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings without those that repeat an earlier one, defaults filled in."""
    distinct: dict[str, Setting] = {}
    for setting in settings:
        distinct.setdefault(LossSpec(setting.loss or "", setting.params).complete.label, setting)
    return list(distinct.values())
