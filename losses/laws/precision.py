"""Check that gradients are derivatives, and both in number formats of low precision."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.overrides import TorchFunctionMode

from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import assertions
from contrastbench.losses.laws.assertions import Build, assert_finite, check_close, law
from contrastbench.losses.laws.causes import LOGARITHM_REMEDY
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views, some_pairing

MULTIPLIED = 0.05  # share of the gradient that is left at a hundredth of the temperature


@law(
    "the gradient is not the derivative of the value",
    "write detach() where a weight is a constant, not .item() or torch.no_grad()",
)
def check_gradient(build: Build, seed: int) -> None:
    """The gradient is the difference quotient's, whatever is detached taken as constant."""
    loss, pairing, views = build(), some_pairing(seed), random_views(seed, 3, dim=3, grad=True)
    frozen, leaves = FrozenDetach(), (*views, *assertions.learned_parameters(loss))
    try:
        gradcheck(lambda *v: frozen.call(loss, pairing(v[:3])), leaves, atol=1e-6, rtol=1e-4)
    except GradcheckError as error:
        # what torch says of the two derivatives, without their numbers
        raise AssertionError(str(error).split("\n")[0].rstrip(", ")) from None


class FrozenDetach(TorchFunctionMode):
    """Replays what every detach() gave in the first call.

    So a loss's detached weights are the constants in the difference quotient that they are in its
    gradient.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []
        self.position = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not torch.Tensor.detach:
            return result
        if self.position == len(self.kept):
            self.kept.append(result.clone())
        self.position += 1
        return self.kept[self.position - 1]

    def call(self, loss: Loss, contrast: Contrast) -> Tensor:
        self.position = 0
        with self:
            value: Tensor = loss(contrast)
        return value


@law("float32 is too coarse for this formula", LOGARITHM_REMEDY)
def check_float32(build: Build, seed: int) -> None:
    """Float32 is within 1e-5 of float64, or four times what rounding the embeddings may change."""
    views, pairing = [v.float() for v in random_views(seed, 2 + seed % 7)], some_pairing(seed)
    leaves, loss = [v.double().requires_grad_() for v in views], build()
    exact, *slopes = assertions.value_and_gradient(loss, pairing(leaves), leaves)
    tolerance = max(1e-5, 4 * rounding(slopes, leaves))
    check_close(build().float()(pairing(views)).double(), exact.detach(), tolerance)


def rounding(slopes: Sequence[Tensor], rows: Sequence[Tensor]) -> float:
    """Return how much a loss may change at most, to first order, if float32 rounds its rows."""
    changes = ((slope * row.detach()).abs().sum() for slope, row in zip(slopes, rows, strict=False))
    return float(sum(changes)) * torch.finfo(torch.float32).eps / 2


@law("half precision changes the loss", "use a ScoreLoss, or torch.autocast(..., enabled=False)")
def check_half_precision(build: Build, seed: int) -> None:
    """Float16 and bfloat16 embeddings, and autocast, give a float32 loss of these numbers."""
    loss, pairing = build().float(), some_pairing(seed)
    for dtype in (torch.float16, torch.bfloat16):
        views = [v.to(dtype) for v in random_views(seed, 6)]
        assert_finite(loss, pairing, views)
        expected = loss(pairing([v.float() for v in views]))
        check_close(loss(pairing(views)), expected, 1e-6)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            check_close(loss(pairing(views)), expected, 1e-6)


@law("the loss overflows at temperature 0.01", LOGARITHM_REMEDY)
def check_low_temperature(build: Build, seed: int) -> None:
    """At temperature 0.01 value and gradient are finite wherever the format can hold them."""
    if not any(key.rpartition(".")[2] == "temperature" for key in build().params):
        return
    for pairing in LAW_PAIRINGS.values():
        views = random_views(seed, 8, dim=32, grad=True)
        exact = assertions.value_and_gradient(build(temperature=0.01), pairing(views), views)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            low = [v.detach().to(dtype).requires_grad_() for v in views]
            seen = assertions.value_and_gradient(build(temperature=0.01).float(), pairing(low), low)
            for number, true in zip(seen, exact, strict=True):
                largest = true.abs().max()
                # 1000 is room for what is summed up; RINCE and NWJ grow as e^(1 / tau)
                if largest < torch.finfo(number.dtype).max / 1000:
                    message = f"{dtype}: not finite where float64 gives {largest:.3g}"
                    assert number.isfinite().all(), message
    if temperature_multiplies(build, seed):
        raise assertions.Remark("a lower temperature weakens the gradient: divide the scores by it")


def temperature_multiplies(build: Build, seed: int) -> bool:
    """Return whether the gradient falls with the temperature, where no positive is close."""
    views = random_views(seed, 8, dim=32)[0], random_views(seed + 1, 8, dim=32)[1]
    sizes = []
    for temperature in (0.01, 1.0):
        leaves = [view.clone().requires_grad_() for view in (*views, views[0])]
        loss = build(temperature=temperature)
        _, *gradients = assertions.value_and_gradient(
            loss, LAW_PAIRINGS["both_views"](leaves), leaves[:2]
        )
        sizes.append(max(gradient.abs().max().item() for gradient in gradients[:2]))
    return sizes[0] < MULTIPLIED * sizes[1]


@law("embeddings of zeros make the loss infinite", "divide by no score or length: both may be zero")
def check_zero_rows(build: Build, seed: int) -> None:
    """Embeddings of zeros give bounded numbers, or finite ones where a loss normalises views."""
    huge, views = "", random_views(seed, 5, dtype=torch.float32)
    for rows in (slice(0, 1), slice(None)):
        zeroed = [v.index_fill(0, torch.arange(5)[rows], 0) for v in views]
        for pairing in LAW_PAIRINGS.values():
            loss = build().float()
            try:
                assert_finite(loss, pairing, zeroed, bound=1e6)
            except AssertionError as error:
                if not loss.needs_views:
                    raise
                assert_finite(loss, pairing, zeroed)
                huge = f"{error} at a row of zeros: F.normalize(z, eps=1e-6) bounds it"
    if huge:
        raise assertions.Remark(huge)
