"""Settings of a row's grid: which there are, and which are tried."""

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

from contrastbench.benchmarks.tables.table import Row

Grid = dict[str, list[Any]]


def grid_of(row: Row, column: str) -> Grid:
    """The row's grid in a column."""
    return {**row.grid, **row.grid_by_column.get(column, {})}


def grid_settings(row: Row, column: str) -> list[dict[str, Any]]:
    """The row's settings, or every combination of its grid's values.

    >>> grid_settings(Row(name="r", loss="adnce", grid={"mu": [0.5, 1.0], "sigma": [1.0]}), "MUTAG")
    [{'mu': 0.5, 'sigma': 1.0}, {'mu': 1.0, 'sigma': 1.0}]
    """
    grid = grid_of(row, column)
    if row.settings:
        return row.settings
    return (
        [dict(zip(grid, values, strict=True)) for values in product(*grid.values())] if grid else []
    )


def draw_settings(grid: Grid, count: int) -> list[dict[str, Any]]:
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
