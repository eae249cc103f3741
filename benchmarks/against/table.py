"""The table that `bench check-loss --against` prints."""

import math
from collections.abc import Iterator, Mapping, Sequence

from contrastbench.benchmarks.against.batches import BATCH_SIZES
from contrastbench.benchmarks.against.compare import LossComparison
from contrastbench.benchmarks.against.cost import RelativeCost, relative_cost

NAME_WIDTH, CELL_WIDTH = 32, 14  # characters of the first column and of the others
NEGLIGIBLE = 1e-6  # of a gradient


def comparison_lines(found: LossComparison, costs: Mapping[int, RelativeCost]) -> Iterator[str]:
    """Yield the table of a comparison, its verdict last."""
    yield f"first    {found.first}"
    yield f"other    {found.other}"
    yield f"pairing  {found.first.pairing}; batches of N samples; relative differences"
    yield ""
    yield text_row("", [f"N = {size}" for size in BATCH_SIZES])
    for dtype, by_size in found.given.items():
        name = str(dtype).removeprefix("torch.")
        yield text_row(f"value, {name}", [relative_text(apart.value) for apart in by_size.values()])
        yield text_row(
            f"gradient, {name}", [relative_text(apart.gradient) for apart in by_size.values()]
        )
    if found.verdict != "equal":
        yield from residual_lines(found)
    if not found.equal:
        yield from kind_lines(found)
    yield text_row("time, first / other", [f"{costs[size].time:.2f}x" for size in BATCH_SIZES])
    yield text_row(
        "kept for backward, first / other", [f"{costs[size].memory:.2f}x" for size in BATCH_SIZES]
    )
    yield ""
    yield found.verdict


def residual_lines(found: LossComparison) -> Iterator[str]:
    """Yield what is left after the temperature, the factor and the constant."""
    if found.temperature:
        yield f"with {found.temperature}:"
    exact = found.exact.values()
    yield text_row("factor", [f"{apart.factor:.6g}" for apart in exact])
    yield text_row("constant", [f"{apart.constant:.6g}" for apart in exact])
    yield text_row("value, left", [relative_text(apart.value_left) for apart in exact])
    yield text_row("gradient, left", [relative_text(apart.gradient_left) for apart in exact])


def kind_lines(found: LossComparison) -> Iterator[str]:
    """Yield what is left of the gradient by kind of pair."""
    for kind in next(iter(found.kinds.values())):
        shares = [found.kinds[size].get(kind, math.inf) for size in BATCH_SIZES]
        if kind not in ("lengths", "other than pairs") or max(shares) > NEGLIGIBLE:
            yield text_row(f"  {kind}", [relative_text(share) for share in shares])


def text_row(name: str, cells: Sequence[str]) -> str:
    """Return a row of the table."""
    return f"{name:{NAME_WIDTH}}" + "".join(f"{cell:>{CELL_WIDTH}}" for cell in cells)


def relative_text(x: float) -> str:
    """Write a relative difference: a small one as a power of ten, others in percent.

    >>> relative_text(3e-16), relative_text(0.125), relative_text(float("inf"))
    ('3e-16', '12.5 %', 'not finite')
    """
    if not math.isfinite(x):
        return "not finite"
    return f"{x:.0e}" if x < 1e-3 else f"{100 * x:.3g} %"


def all_costs(found: LossComparison) -> dict[int, RelativeCost]:
    """Return time and memory of the first relative to the other, by batch size."""
    return {size: relative_cost(found.first, found.other, size) for size in BATCH_SIZES}
