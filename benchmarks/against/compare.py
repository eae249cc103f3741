"""Compare values and gradients of two losses, and say up to what they are equal."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from contrastbench.benchmarks.against.batches import BATCH_SIZES, Batch, batches
from contrastbench.benchmarks.against.calls import CalledLoss, ids
from contrastbench.benchmarks.against.pairs import apart_by_kind

EQUAL_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}  # relative
FIT_BATCH = 16  # batch size at which a temperature is fitted
LARGE_FACTOR = 2.0  # a factor that is taken out before kinds of pairs are compared
SCALE_RANGE = (1e-2, 1e2)  # of the temperatures and scales that are tried

ValueAndGradient = tuple[float, Tensor]  # value, and the gradient in all embeddings


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
    kinds: Mapping[int, Mapping[str, float]]  # by batch size: how far apart on each kind of pair

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
        up_to = [name for name in (self.named_factor(), self.named_constant()) if name]
        words = "equal" + (" up to " + " and ".join(up_to) if up_to else "")
        return words + (f" with {self.temperature}" if self.temperature else "")

    def named_factor(self) -> str:
        """Return the factor in words; "" where it is 1."""
        return named_formula("a factor", {n: a.factor for n, a in self.exact.items()}, FACTORS, 1.0)

    def named_constant(self) -> str:
        """Return the constant in words; "" where it is 0."""
        return named_formula(
            "a constant", {n: a.constant for n, a in self.exact.items()}, CONSTANTS, 0.0
        )

    @property
    def exact(self) -> Mapping[int, Apart]:
        """Return what was found in float64."""
        return self.fitted[torch.float64]

    def difference(self) -> str:
        """Say where the losses differ."""
        exact = self.exact
        if all_equal(exact):
            if any(apart.factor < 0 for apart in exact.values()):
                return f"the sign is flipped ({self.named_factor()})"
            return f"in float32 alone, {self.size_in_float32()}"
        if all(apart.gradient_left <= EQUAL_TOLERANCE[torch.float64] for apart in exact.values()):
            return "the gradients are equal, the values are not"
        size = max(exact, key=lambda size: exact[size].gradient_left)
        apart, kinds = exact[size], self.kinds[size]
        if not math.isfinite(apart.gradient):
            return f"one of them is not finite at N = {size}"
        most = max(kinds, key=lambda name: round(kinds[name], 3))  # of equals the first
        return (
            f"gradients by {percent(apart.gradient)} at N = {size}, "
            f"most in {most} ({percent(kinds[most])})"
        )

    def size_in_float32(self) -> str:
        """Say at which batch size float32 is first apart."""
        for size, apart in self.fitted[torch.float32].items():
            if not apart.equal(torch.float32):
                left = max(apart.gradient_left, apart.value_left)
                return (
                    f"by {percent(left)} at N = {size}"
                    if math.isfinite(left)
                    else (f"not finite at N = {size}")
                )
        return "nowhere"


def compare_on_batches(first: CalledLoss, other: CalledLoss) -> LossComparison:
    """Compare two losses on the same batches in float64 and in float32."""
    given = {dtype: all_sizes(first, other, dtype) for dtype in EQUAL_TOLERANCE}
    fitted, temperature, pair = given, "", (first, other)
    if not all_equal(given[torch.float64]):
        for words, changed in fitted_temperatures(first, other):
            if all_equal(all_sizes(*changed, torch.float64)):
                temperature, pair = words, changed
                fitted = {dtype: all_sizes(*pair, dtype) for dtype in EQUAL_TOLERANCE}
                break
    kinds = {size: by_kind(*pair, size, fitted[torch.float64][size].factor) for size in BATCH_SIZES}
    return LossComparison(first, other, given, fitted, temperature, kinds)


def all_equal(found: Mapping[int, Apart]) -> bool:
    """Return whether two losses are equal in float64 at each batch size, up to a factor."""
    return all(apart.equal(torch.float64) for apart in found.values())


def all_sizes(first: CalledLoss, other: CalledLoss, dtype: torch.dtype) -> dict[int, Apart]:
    """Return by batch size how far two losses are apart."""
    return {size: measure_apart(first, other, batches(size), dtype) for size in BATCH_SIZES}


def runs(side: CalledLoss, some: Sequence[Batch], dtype: torch.dtype) -> list[ValueAndGradient]:
    """Return value and gradient of a loss on each batch."""
    loss, found = side.make(dtype), []
    for batch in some:
        leaves = batch.leaves(dtype)
        value = loss(leaves)
        gradients = torch.autograd.grad(
            value, [leaves.z1, leaves.z2], allow_unused=True, materialize_grads=True
        )
        found.append((float(value.detach()), torch.cat(gradients).double()))
    return found


def measure_apart(
    first: CalledLoss, other: CalledLoss, some: Sequence[Batch], dtype: torch.dtype
) -> Apart:
    """Return how far two losses are apart on some batches of one size."""
    one, two = runs(first, some, dtype), runs(other, some, dtype)
    values = torch.tensor([[a, b] for (a, _), (b, _) in zip(one, two, strict=True)])
    g1, g2 = (torch.stack([gradient for _, gradient in run]) for run in (one, two))
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
    found = float(differences.abs().max())
    return found if math.isfinite(found) else math.inf


def norm_ratio(difference: Tensor, whole: Tensor) -> float:
    """Return the length of a difference relative to the whole, infinity where it is none."""
    found, scale = float(difference.norm()), float(whole.norm())
    if not (math.isfinite(found) and math.isfinite(scale)):
        return math.inf
    return found / scale if scale else (math.inf if found else 0.0)


def by_kind(first: CalledLoss, other: CalledLoss, size: int, factor: float) -> dict[str, float]:
    """Return by kind of pair how far the gradients of a batch are apart.

    A factor near 1 is no factor: it only mixes the kinds that differ with those that do not.
    """
    factor = 1.0 if 1 / LARGE_FACTOR < factor < LARGE_FACTOR else factor
    batch = batches(size)[0]
    ((_, one),) = runs(first, [batch], torch.float64)
    ((_, two),) = runs(other, [batch], torch.float64)
    if not (one.isfinite().all() and two.isfinite().all()):
        return {}
    return apart_by_kind(one, factor * two, batch, ids(first.pairing, batch))


def fitted_temperatures(
    first: CalledLoss, other: CalledLoss
) -> "list[tuple[str, tuple[CalledLoss, CalledLoss]]]":
    """Return the pairs in which one has another temperature, in words and as sides."""
    found = []
    for which, key in (("first", first.temperature), ("other", other.temperature)):
        if key is None:
            continue

        def changed(x: float, which: str = which, key: str = key) -> tuple[CalledLoss, CalledLoss]:
            if which == "first":
                return first.with_params(**{key: x}), other
            return first, other.with_params(**{key: x})

        best = best_temperature(changed)
        if best is not None:
            found.append((f"{key}={best:g} of the {which}", changed(best)))
    return found


def best_temperature(changed: Callable[[float], tuple[CalledLoss, CalledLoss]]) -> float | None:
    """Return the temperature at which the gradients are nearest up to a factor; None: no fit."""
    some = batches(FIT_BATCH)[:1]

    def left(log_x: float) -> float:
        found = measure_apart(*changed(math.exp(log_x)), some, torch.float64).gradient_left
        return min(found, 1e3)

    low, high = map(math.log, SCALE_RANGE)
    step = (high - low) / 30
    start = min((low + i * step for i in range(31)), key=left)
    best = minimize_scalar(
        left, bounds=(start - step, start + step), method="bounded", options={"xatol": 1e-9}
    )
    for digits in range(1, 7):  # the temperature that somebody has written
        rounded = float(f"{math.exp(best.x):.{digits}g}")
        if left(math.log(rounded)) <= EQUAL_TOLERANCE[torch.float64]:
            return rounded
    return None


Formulas = Mapping[str, Callable[[int], float]]
COUNTS: Formulas = {
    "N": lambda n: n,
    "(N - 1)": lambda n: n - 1,
    "2N": lambda n: 2 * n,
    "(2N - 1)": lambda n: 2 * n - 1,
    "(2N - 2)": lambda n: 2 * n - 2,
}
FACTORS: Formulas = {
    **COUNTS,
    **{f"1/{name}": lambda n, f=f: 1 / f(n) for name, f in COUNTS.items()},  # type: ignore[misc]
}
LOGARITHMS: Formulas = {
    f"log {name}": lambda n, f=f: math.log(f(n))  # type: ignore[misc]
    for name, f in COUNTS.items()
}
CONSTANTS: Formulas = {
    **LOGARITHMS,
    **{f"-{name}": lambda n, f=f: -f(n) for name, f in LOGARITHMS.items()},  # type: ignore[misc]
}


def named_formula(what: str, values: Mapping[int, float], formulas: Formulas, none: float) -> str:
    """Return numbers by batch size as one number, as a formula of N, or written out."""

    def all_near(f: Callable[[int], float]) -> bool:
        return all(math.isclose(x, f(n), rel_tol=1e-5, abs_tol=1e-5) for n, x in values.items())

    first = next(iter(values.values()))
    if all_near(lambda _: none):
        return ""
    if all_near(lambda _: first):
        return f"{what} {first:.6g}"
    for name, formula in formulas.items():
        if all_near(formula):
            return f"{what} {name}"
    return f"{what} of the batch (" + ", ".join(f"{x:.4g}" for x in values.values()) + ")"


def percent(share: float) -> str:
    """Write a share for people.

    >>> percent(1.0), percent(0.0312)
    ('100 %', '3.1 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"
