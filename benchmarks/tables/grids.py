"""Grids of published tables: settings that are drawn at random, as papers draw them.

The same grid always gives the same settings. Brings no torch.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.errors import UserError


@dataclass(frozen=True)
class Grid:
    """So many settings of a row's grid, drawn at random."""

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
    return math.prod(map(len, grid.values())) if grid else 0


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
