"""Helpers of the checks: values, gradients, and how close two of them are."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from contrastbench.losses import blocks
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws.random_contrasts import PairingFunction
from contrastbench.losses.laws.source_lines import SourceLine

Build = Callable[..., Loss]  # makes the loss in float64, with some parameters changed


@dataclass(frozen=True)
class Law:
    """A check of a loss, a domain or a device, what its failure means, and what usually helps then.

    A check raises AssertionError, and may return what it has found.
    """

    check: Callable[..., str | None]
    wrong: str = ""  # "": its message says it
    remedy: str = ""

    @property
    def name(self) -> str:
        return self.check.__name__.removeprefix("check_").replace("_", " ")

    def __call__(self, build: Build, seed: int) -> str | None:
        return self.check(build, seed)


def law(wrong: str, remedy: str) -> Callable[[Callable[..., None]], Law]:
    return lambda check: Law(check, wrong, remedy)


class Wrong(AssertionError):
    """A failed check that knows its cause: what is wrong, what helps, and the user's line."""

    def __init__(self, message: str, remedy: str = "", place: SourceLine | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.place = place


class Remark(Exception):
    """Something that a user should know of a loss that has passed a check."""


def value_and_gradient(loss: Loss, contrast: Contrast, views: Sequence[Tensor]) -> list[Tensor]:
    """The loss, and what it sends back to each view and to each parameter of its own."""
    value = loss(contrast)
    leaves = [*views, *learned_parameters(loss)]
    return [value, *blocks.gradients(value, leaves, retain_graph=True)]


def learned_parameters(loss: Loss) -> list[Tensor]:
    return [parameter for parameter in loss.parameters() if parameter.requires_grad]


def configured(loss: Loss, options: Mapping[str, int]) -> Loss:
    for module in loss.modules():
        for name, value in options.items():
            if hasattr(module, name):
                setattr(module, name, value)
    return loss


def assert_finite(
    loss: Loss, pairing: PairingFunction, views: Sequence[Tensor], bound: float = math.inf
) -> None:
    leaves = [v.detach().clone().requires_grad_() for v in views]
    value, *gradients = value_and_gradient(loss, pairing(leaves), leaves)
    assert value.abs() < bound, f"the loss is {value.item()}"
    for gradient in gradients:
        assert gradient.isfinite().all(), "a gradient is not finite"
        assert gradient.abs().max() < bound, f"a gradient is {gradient.abs().max().item()}"


def check_close(value: Tensor, expected: Tensor, tolerance: float) -> None:
    """Fail unless numbers agree, relative to the largest of the expected ones, or to 1."""
    scale = max(1.0, expected.abs().max().item())
    error = (value - expected).abs().max().item()
    assert error <= tolerance * scale, (
        f"{error:.2g} apart from {expected.abs().max().item():.6g}, more than {tolerance:g}"
    )


def raises_value_error(call: Callable[[], object], mistake: str) -> None:
    try:
        call()
    except ValueError:
        return
    raise AssertionError(f"{mistake} does not raise ValueError")
