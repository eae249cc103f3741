"""The table that `bench check-loss --against` prints."""

import math
from collections.abc import Iterator, Mapping, Sequence

from contrastbench.benchmarks.against.batches import SIZES
from contrastbench.benchmarks.against.compare import Comparison
from contrastbench.benchmarks.against.cost import Cost, relative_cost

NAME, CELL = 32, 14  # characters of the first column and of the others
NOTHING = 1e-6  # of a gradient


def lines(found: Comparison, costs: Mapping[int, Cost]) -> Iterator[str]:
    """Yield the table of a comparison, its verdict last."""
    yield f"first    {found.first}"
    yield f"other    {found.other}"
    yield f"pairing  {found.first.pairing}; batches of N samples; relative differences"
    yield ""
    yield row("", [f"N = {size}" for size in SIZES])
    for dtype, by_size in found.given.items():
        name = str(dtype).removeprefix("torch.")
        yield row(f"value, {name}", [small(apart.value) for apart in by_size.values()])
        yield row(f"gradient, {name}", [small(apart.gradient) for apart in by_size.values()])
    if found.verdict != "equal":
        yield from left(found)
    if not found.equal:
        yield from kinds(found)
    yield row("time, first / other", [f"{costs[size].time:.2f}x" for size in SIZES])
    yield row("kept for backward, first / other", [f"{costs[size].memory:.2f}x" for size in SIZES])
    yield ""
    yield found.verdict


def left(found: Comparison) -> Iterator[str]:
    """Yield what is left after the temperature, the factor and the constant."""
    if found.temperature:
        yield f"with {found.temperature}:"
    exact = found.exact.values()
    yield row("factor", [f"{apart.factor:.6g}" for apart in exact])
    yield row("constant", [f"{apart.constant:.6g}" for apart in exact])
    yield row("value, left", [small(apart.value_left) for apart in exact])
    yield row("gradient, left", [small(apart.gradient_left) for apart in exact])


def kinds(found: Comparison) -> Iterator[str]:
    """Yield what is left of the gradient by kind of pair."""
    for kind in next(iter(found.kinds.values())):
        shares = [found.kinds[size].get(kind, math.inf) for size in SIZES]
        if kind not in ("lengths", "other than pairs") or max(shares) > NOTHING:
            yield row(f"  {kind}", [small(share) for share in shares])


def row(name: str, cells: Sequence[str]) -> str:
    """Return a row of the table."""
    return f"{name:{NAME}}" + "".join(f"{cell:>{CELL}}" for cell in cells)


def small(x: float) -> str:
    """Write a relative difference: a small one as a power of ten, others in percent.

    >>> small(3e-16), small(0.125), small(float("inf"))
    ('3e-16', '12.5 %', 'not finite')
    """
    if not math.isfinite(x):
        return "not finite"
    return f"{x:.0e}" if x < 1e-3 else f"{100 * x:.3g} %"


def all_costs(found: Comparison) -> dict[int, Cost]:
    """Return time and memory of the first relative to the other, by batch size."""
    return {size: relative_cost(found.first, found.other, size) for size in SIZES}
