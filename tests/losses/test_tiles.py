"""Symmetric tiles give what the whole matrix gives, at any size, and say when they cannot."""

import pytest
import torch

from contrastbench.losses import LOSSES, Loss, both_views, get_loss, same_class
from contrastbench.losses.exponential import SummedLoss
from contrastbench.losses.laws.assertions import configured, value_and_gradient
from contrastbench.losses.laws.random_contrasts import numbered_samples, random_views
from contrastbench.losses.registry import describe

TILED = [name for name in LOSSES if isinstance(get_loss(name), SummedLoss)]
WHOLE = 10**9
KINDS = torch.float32, torch.float64


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tiles_are_the_whole(name: str, dtype: torch.dtype) -> None:
    """300 anchors in tiles of 64, in float32 to its accuracy."""
    views = random_views(1, 150, dtype=dtype, grad=True)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    sharp = {"temperature": 0.1} if "temperature" in describe(name).params else {}

    def made(tile: int) -> Loss:
        loss = configured(get_loss(name, **sharp).to(dtype), {"tile": tile})
        loss.prepare_samples(150)
        return loss

    for contrast in (both_views(*views[:2]), same_class(*views[:2], torch.arange(150) % 7)):
        found, expected = (
            value_and_gradient(made(tile), numbered_samples(contrast), views)
            for tile in (64, WHOLE)
        )
        for a, b in zip(found, expected, strict=True):
            scale = max(1, b.abs().max().item())
            torch.testing.assert_close(a / scale, b / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("temperature", [0.01, 0.02])
def test_cold_losses_are_right_in_float32(temperature: float) -> None:
    """The smallest summand is e^-100 of the largest, or e^-200, where rows take over."""
    views = random_views(2, 150, dtype=torch.float32)
    loss = configured(get_loss("infonce", temperature=temperature), {"tile": 64})
    found, expected = (
        value_and_gradient(loss, both_views(*x), x)
        for x in ([v.to(kind).requires_grad_() for v in views[:2]] for kind in KINDS)
    )
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)
