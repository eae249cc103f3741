"""Draw the settings of a grid that are tried."""

import random
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any


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


def has_duplicates(values: Sequence[Any]) -> bool:
    """Return whether one is there twice, perhaps in another notation.

    >>> has_duplicates([1, 2, 1.0]), has_duplicates([1, "1"]), has_duplicates([1, 2])
    (True, True, False)
    """
    return any(value in values[:i] for i, value in enumerate(values)) or len(
        set(map(str, values))
    ) < len(values)
