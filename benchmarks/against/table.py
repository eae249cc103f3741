"""The table that `bench check-loss --against` prints."""

import math
from collections.abc import Iterator, Mapping, Sequence


from contrastbench.benchmarks.against.batches import SIZES
from contrastbench.benchmarks.against.compare import Comparison
from contrastbench.benchmarks.against.cost import ratios

WIDTH = 34  # of the first column


def lines(found: Comparison, costs: Mapping[int, tuple[float, float]]) -> Iterator[str]:
    """Yield the table of a comparison, its verdict last."""
    yield f"first    {found.first}"
    yield f"other    {found.other}"
    yield f"pairing  {found.first.pairing}, random batches of N samples, relative differences"
    yield ""
    yield row("", [f"N = {size}" for size in SIZES])
    for dtype, by_size in found.given.items():
        name = str(dtype).removeprefix("torch.")
        yield row(f"value, {name}", [small(a.value) for a in by_size.values()])
        yield row(f"gradient, {name}", [small(a.gradient) for a in by_size.values()])
    yield from after(found)
    yield row("time, first / other", [f"{costs[size][0]:.2f}x" for size in SIZES])
    yield row("memory, first / other", [f"{costs[size][1]:.2f}x" for size in SIZES])
    yield ""
    yield found.verdict


def after(found: Comparison) -> Iterator[str]:
    """Yield what is left after factor, constant and temperature, and by kind of pair."""
    exact = found.exact.values()
    if found.temperature:
        yield f"with {found.temperature}"
    yield row("factor", [f"{a.factor:.6g}" for a in exact])
    yield row("constant", [f"{a.constant:.6g}" for a in exact])
    yield row("value, what is left", [small(a.value_left) for a in exact])
    yield row("gradient, what is left", [small(a.gradient_left) for a in exact])
    for kind in next(iter(found.kinds.values())):
        yield row(f"  {kind}", [small(found.kinds[size].get(kind, math.inf)) for size in SIZES])


def row(name: str, cells: Sequence[str]) -> str:
    """Return a row of the table."""
    return f"{name:{WIDTH}}" + "".join(f"{cell:>14}" for cell in cells)


def small(x: float) -> str:
    """Write a relative difference: rounding as a power of ten, others in percent."""
    if not math.isfinite(x):
        return "not finite"
    return f"{x:.0e}" if x < 1e-3 else f"{100 * x:.3g} %"


def all_costs(found: Comparison) -> dict[int, tuple[float, float]]:
    """Return time and memory of the first relative to the other by batch size."""
    return {size: ratios(found.first, found.other, size) for size in SIZES}


