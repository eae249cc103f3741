"""Compare values and gradients of two losses: up to what they are equal, or how near they are."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from contrastbench.benchmarks.against.calls import (
    BATCH_SIZES,
    Batch,
    CalledLoss,
    batches,
    random_batch,
)

EQUAL_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}  # relative
FIT_BATCH = 16  # batch size at which a temperature is fitted
SCALE_RANGE = (1e-2, 1e2)  # of the temperatures and scales that are tried
NAME_WIDTH, CELL_WIDTH = 20, 14  # characters of the table's first column and of the others

ValueAndGradient = tuple[float, Tensor]  # value, and the gradient in all embeddings
PAIRS = 64  # of the batch
TEMPERATURES = np.geomspace(0.02, 1, 18).round(3).tolist()  # those that searches have


@dataclass(frozen=True)
class Apart:
    """How far two losses are apart at one batch size, in one dtype."""

    value: float
    gradient: float
    factor: float  # first = factor * other + constant
    constant: float
    value_left: float  # after factor and constant
    gradient_left: float

    def equal(self, dtype: torch.dtype) -> bool:
        """Return whether nothing is left after factor and constant."""
        return max(self.value_left, self.gradient_left) <= EQUAL_TOLERANCE[dtype]


@dataclass(frozen=True)
class LossComparison:
    """What two losses gave on the same batches."""

    first: CalledLoss
    other: CalledLoss
    given: Mapping[torch.dtype, Mapping[int, Apart]]
    fitted: Mapping[torch.dtype, Mapping[int, Apart]]  # with the temperature that fits best
    temperature: str  # which, in words; "" where none helps

    @property
    def equal(self) -> bool:
        """Return whether the losses are equal up to what `verdict` names."""
        rows = [(apart, dtype) for dtype, by in self.fitted.items() for apart in by.values()]
        return all(apart.equal(dtype) and apart.factor > 0 for apart, dtype in rows)

    @property
    def verdict(self) -> str:
        """Say in one line whether the losses are equal, up to what, or where they differ."""
        if not self.equal:
            return "different: " + self.difference()
        up_to = [
            named_number("a factor", [apart.factor for apart in self.exact.values()], 1.0),
            named_number("a constant", [apart.constant for apart in self.exact.values()], 0.0),
        ]
        words = " and ".join(filter(None, up_to))
        with_it = f" with {self.temperature}" * bool(self.temperature)
        return "equal" + f" up to {words}" * bool(words) + with_it

    @property
    def exact(self) -> Mapping[int, Apart]:
        """Return what was found in float64."""
        return self.fitted[torch.float64]

    def difference(self) -> str:
        exact = self.exact.values()
        if all_equal(self.exact):
            if any(apart.factor < 0 for apart in exact):
                return "the sign is flipped"
            sizes = self.fitted[torch.float32].items()
            size, apart = next(pair for pair in sizes if not pair[1].equal(torch.float32))
            left = max(apart.gradient_left, apart.value_left)
            return f"in float32 alone, {size_text(left, size)}"
        if all(apart.gradient_left <= EQUAL_TOLERANCE[torch.float64] for apart in exact):
            return "the gradients are equal, the values are not"
        size = max(self.exact, key=lambda size: self.exact[size].gradient_left)
        return f"gradients {size_text(self.exact[size].gradient, size)}"

    def lines(self) -> Iterator[str]:
        yield f"first    {self.first}"
        yield f"other    {self.other}"
        yield f"pairing  {self.first.pairing}; batches of N samples; relative differences"
        yield ""
        yield text_row("", [f"N = {size}" for size in BATCH_SIZES])
        for dtype, by_size in self.given.items():
            for what in ("value", "gradient"):
                cells = [relative_text(getattr(apart, what)) for apart in by_size.values()]
                yield text_row(f"{what}, {str(dtype).removeprefix('torch.')}", cells)
        if self.verdict != "equal":
            if self.temperature:
                yield f"with {self.temperature}:"
            for what, text in FITTED.items():
                cells = [text(getattr(apart, what)) for apart in self.exact.values()]
                yield text_row(what.replace("_", ", "), cells)
        yield ""
        yield self.verdict


def compare_on_batches(first: CalledLoss, other: CalledLoss) -> LossComparison:
    """Compare two losses on the same batches in float64 and in float32."""
    given = {dtype: all_sizes(first, other, dtype) for dtype in EQUAL_TOLERANCE}
    if not all_equal(given[torch.float64]):
        for words, pair in fitted_temperatures(first, other):
            if all_equal(all_sizes(*pair, torch.float64)):
                fitted = {dtype: all_sizes(*pair, dtype) for dtype in EQUAL_TOLERANCE}
                return LossComparison(first, other, given, fitted, words)
    return LossComparison(first, other, given, given, "")


def all_equal(by_size: Mapping[int, Apart]) -> bool:
    """Return whether two losses are equal in float64 at each batch size, up to a factor."""
    return all(apart.equal(torch.float64) for apart in by_size.values())


def all_sizes(first: CalledLoss, other: CalledLoss, dtype: torch.dtype) -> dict[int, Apart]:
    return {size: measure_apart(first, other, batches(size), dtype) for size in BATCH_SIZES}


def runs(side: CalledLoss, some: Sequence[Batch], dtype: torch.dtype) -> list[ValueAndGradient]:
    """Return value and gradient of a loss on each batch."""
    loss, results = side.make(dtype), []
    for batch in some:
        leaves = batch.leaves(dtype)
        value = loss(leaves)
        given = leaves.z1, leaves.z2
        gradients = torch.autograd.grad(value, given, allow_unused=True, materialize_grads=True)
        results.append((float(value.detach()), torch.cat(gradients).double()))
    return results


def measure_apart(
    first: CalledLoss, other: CalledLoss, some: Sequence[Batch], dtype: torch.dtype
) -> Apart:
    """Return how far two losses are apart on some batches of one size."""
    both = runs(first, some, dtype), runs(other, some, dtype)
    values = torch.tensor([[a, b] for (a, _), (b, _) in zip(*both, strict=True)])
    g1, g2 = (torch.stack([gradient for _, gradient in run]) for run in both)
    factor = snapped(float((g1 * g2).sum() / (g2 * g2).sum()), 1.0, dtype) if g2.any() else 1.0
    offsets = values[:, 0].double() - factor * values[:, 1].double()
    constant = snapped(float(offsets.mean()), 0.0, dtype)
    scale = max(1.0, float(values.abs().max()))
    return Apart(
        largest_difference((values[:, 0] - values[:, 1]) / scale),
        norm_ratio(g1 - g2, g1),
        factor,
        constant,
        largest_difference((offsets - constant) / max(1.0, float(values[:, 0].abs().max()))),
        norm_ratio(g1 - factor * g2, g1),
    )


def snapped(x: float, target: float, dtype: torch.dtype) -> float:
    """Return the target where x is as near to it as rounding."""
    return target if abs(x - target) <= EQUAL_TOLERANCE[dtype] else x


def largest_difference(differences: Tensor) -> float:
    """Return the largest size, infinity where one is not a number."""
    return float(differences.abs().nan_to_num(math.inf).max())


def norm_ratio(difference: Tensor, whole: Tensor) -> float:
    """Return the length of a difference relative to the whole, infinity where it is none."""
    norm, scale = float(difference.norm()), float(whole.norm())
    if not (math.isfinite(norm) and math.isfinite(scale)):
        return math.inf
    return norm / scale if scale else (math.inf if norm else 0.0)


def fitted_temperatures(
    first: CalledLoss, other: CalledLoss
) -> Iterator[tuple[str, tuple[CalledLoss, CalledLoss]]]:
    """Yield the pairs in which one has another temperature, in words and as sides."""
    if key := first.temperature:
        best = best_temperature(lambda x: (first.with_params(**{key: x}), other))
        if best is not None:
            yield f"{key}={best:g} of the first", (first.with_params(**{key: best}), other)
    if theirs := other.temperature:
        best = best_temperature(lambda x: (first, other.with_params(**{theirs: x})))
        if best is not None:
            yield f"{theirs}={best:g} of the other", (first, other.with_params(**{theirs: best}))


def best_temperature(changed: Callable[[float], tuple[CalledLoss, CalledLoss]]) -> float | None:
    """Return the temperature at which the gradients are nearest up to a factor; None: no fit."""
    some = batches(FIT_BATCH)[:1]

    def left(log_x: float) -> float:
        apart = measure_apart(*changed(math.exp(log_x)), some, torch.float64).gradient_left
        return min(apart, 1e3)

    low, high = map(math.log, SCALE_RANGE)
    step = (high - low) / 30
    start = min((low + i * step for i in range(31)), key=left)
    bounds = start - step, start + step
    best = minimize_scalar(left, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    for digits in range(1, 7):  # the temperature that somebody has written
        rounded = float(f"{math.exp(best.x):.{digits}g}")
        if left(math.log(rounded)) <= EQUAL_TOLERANCE[torch.float64]:
            return rounded
    return None


def named_number(what: str, values: Sequence[float], none: float) -> str:
    """Return a factor or a constant in words, which may depend on the batch; "" for none.

    >>> named_number("a factor", [0.5, 0.5], 1.0), named_number("a factor", [0.5, 0.25], 1.0)
    ('a factor 0.5', 'a factor of the batch (0.5, 0.25)')
    """
    near = partial(math.isclose, rel_tol=1e-5, abs_tol=1e-5)
    if all(near(x, none) for x in values):
        return ""
    if all(near(x, values[0]) for x in values):
        return f"{what} {values[0]:.6g}"
    return f"{what} of the batch ({', '.join(f'{x:.5g}' for x in values)})"


def text_row(name: str, cells: Sequence[str]) -> str:
    return f"{name:{NAME_WIDTH}}" + "".join(f"{cell:>{CELL_WIDTH}}" for cell in cells)


def relative_text(x: float) -> str:
    """Write a relative difference: a small one as a power of ten, others in percent.

    >>> relative_text(3e-16), relative_text(0.125), relative_text(float("inf"))
    ('3e-16', '12.5 %', 'not finite')
    """
    if not math.isfinite(x):
        return "not finite"
    return f"{x:.0e}" if x < 1e-3 else f"{100 * x:.3g} %"


FITTED: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("factor", "constant"), "{:.6g}".format),
    **dict.fromkeys(("value_left", "gradient_left"), relative_text),
}


def size_text(share: float, size: int) -> str:
    """Return how large a difference is at a batch size, in two digits or whole percent.

    >>> size_text(1.0, 4), size_text(0.0312, 16)
    ('by 100 % at N = 4', 'by 3.1 % at N = 16')
    """
    digits = f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"
    return (f"by {digits} %" if math.isfinite(share) else "not finite") + f" at N = {size}"


def nearness(name: str, params: Mapping[str, Any]) -> tuple[float, float]:
    """Return the highest cosine of a loss's gradient with InfoNCE's, and InfoNCE's temperature.

    The gradients are those in all embeddings of one drawn batch of 64 pairs, in float64. A cosine
    of 1 is the same step on that batch; at the lowest temperature it is nearly the hardest negative
    alone, which sharp losses share.

    >>> nearness("infonce", {"temperature": 0.2})
    (1.0, 0.2)
    >>> nearness("debiased", {"temperature": 0.2, "tau_plus": 0.1})[0] < 1
    True
    """
    mine = gradient(name, tuple(params.items()))
    taus = ((tau, gradient("infonce", (("temperature", tau),))) for tau in TEMPERATURES)
    found = {tau: float(mine @ theirs) for tau, theirs in taus}
    best = max(found, key=found.__getitem__)
    return round(found[best], 3), best


@lru_cache
def gradient(name: str, params: tuple[tuple[str, Any], ...]) -> torch.Tensor:
    """Return the gradient of a loss on the batch, of length 1; every loss asks for InfoNCE's."""
    ((_, found),) = runs(CalledLoss(name, dict(params)), [random_batch(PAIRS, 0)], torch.float64)
    return torch.nn.functional.normalize(found.flatten(), dim=0)
