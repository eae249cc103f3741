"""Draw the settings that are tried: of a grid, or of the ranges that a loss declares.

Both are Latin hypercubes, which spread each parameter's values over the trials. Brings no torch.
The same loss always gets the same settings.
"""

import math
import random
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

from contrastbench.losses.ranges import Choice, Given, Number, Range, Whole
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import NONE, LossSpec

Params = dict[str, Any]
Places = dict[str, list[int]]  # by parameter: in which part of its interval each point lies
DRAWS = 100  # of which the best is taken


def hypercube_settings(loss: LossSpec, count: int) -> list[Params]:
    """The loss's defaults and count - 1 points of the ranges that it declares worth a search.

    Fewer where its choices have no more; none for a loss that declares nothing.

    >>> hypercube_settings(LossSpec("infonce"), 4)
    [{}, {'temperature': 0.22}, {'temperature': 0.61}, {'temperature': 0.082}]
    """
    free = searched_ranges(loss)
    if not free or count < 2:
        return []
    fixed = {**describe(loss.name).params, **loss.params}
    choices = [len(field.choices) for field in free.values() if isinstance(field, Choice)]
    enough = min(count, math.prod(choices)) if choices else count
    best: list[Params] = []
    draws = latin_hypercubes(len(free), count - 1)
    for places in draws if len(free) > 1 else draws[:1]:  # of one parameter all are alike
        named = dict(zip(free, places, strict=True))
        points = distinct_points([{}, *hypercube_points(free, fixed, named)], fixed)
        best = max(best, points, key=len)
        if len(best) == enough:
            break
    return best


def searched_ranges(loss: LossSpec) -> dict[str, Range]:
    """The ranges of the numbers that are not given; of choices where there is no number.

    A choice is another method, such as a variant: it stands at its default, and whoever wants to
    compare it lists it.
    """
    if loss.name == NONE:
        return {}
    free = {
        name: range_
        for name, range_ in describe(loss.name).ranges.items()
        if name not in loss.params and name.rpartition(".")[2] not in loss.params
    }
    numbers: dict[str, Range] = {
        name: range_
        for name, range_ in free.items()
        if isinstance(range_, Given) or (isinstance(range_, Number) and range_.tune)
    }
    return numbers or {name: r for name, r in free.items() if isinstance(r, Choice)}


@cache
def latin_hypercubes(dimensions: int, count: int) -> list[list[list[int]]]:
    """Latin hypercubes: each parameter's interval has so many parts, each of them met once.

    Those whose parameters depend least on each other come first.
    """
    rng = random.Random(0)
    draws = [[rng.sample(range(count), count) for _ in range(dimensions)] for _ in range(DRAWS)]
    return sorted(draws, key=dependence)


def dependence(places: list[list[int]]) -> float:
    """Return how dependent parameters are: the sum of the absolute covariances of their places.

    >>> dependence([[0, 1, 2], [0, 1, 2]]), dependence([[0, 1, 2], [1, 2, 0]])
    (2.0, 1.0)
    """
    pairs = combinations(places, 2)
    return sum(
        abs(sum(x * y for x, y in zip(a, b, strict=True)) - sum(a) * sum(b) / len(a))
        for a, b in pairs
    )


def hypercube_points(free: Mapping[str, Range], fixed: Params, places: Places) -> list[Params]:
    """The values in the middle of those parts."""
    count = len(next(iter(places.values())))
    return [
        {
            name: value_at((places[name][i] + 0.5) / count, range_, fixed, name)
            for name, range_ in free.items()
        }
        for i in range(count)
    ]


def value_at(share: float, range_: Range, fixed: Params, name: str) -> Any:
    """Return the value at that share of a range, with two significant digits.

    >>> value_at(0.5, Number(low=0, tune=(0.01, 1), log=True), {}, "temperature")
    0.1
    """
    if isinstance(range_, Choice):
        return range_.choices[int(share * len(range_.choices))]
    if isinstance(range_, Given):
        prefix = name.rpartition(".")[0]
        other = f"{prefix}.{range_.other}" if prefix else range_.other
        return value_at(share, range_.ranges[fixed[other]], fixed, name)
    assert range_.tune, "only such are searched"
    low, high = range_.tune
    value = low * (high / low) ** share if range_.log else low + (high - low) * share
    return round(value) if isinstance(range_, Whole) else rounded(value)


def rounded(value: float) -> float:
    """The value with two digits that count."""
    return round(value, 1 - math.floor(math.log10(abs(value)))) if value else value


def distinct_points(drawn: list[Params], fixed: Params) -> list[Params]:
    """Return the points that still differ once they are combined with the fixed parameters."""
    distinct: list[Params] = []
    for point in drawn:
        if all({**fixed, **point} != {**fixed, **other} for other in distinct):
            distinct.append(point)
    return distinct


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
