"""Every loss against the loop from its paper, on random cases."""

from dataclasses import replace

import pytest
import torch

import frozen
from cases import NAMES, numbers, random_contrast, random_params
from contrastbench.losses import LOSSES, Contrast, Loss, get_loss
from contrastbench.losses.laws.precision import rounding
from contrastbench.losses.laws.random_contrasts import with_sample_numbers
from counts import times
from oracles import DRAWN, ORACLES

JUDGED = [name for name in NAMES if name in ORACLES]
ROWS = ("anchor", "positive", "keys")


def single(contrast: Contrast) -> Contrast:
    rows = {name: getattr(contrast, name) for name in ROWS}
    return replace(contrast, **{name: x.float() for name, x in rows.items() if x is not None})


def exact(name: str, seed: int) -> Loss:
    """The loss with random parameters; what it learns is not rounded to float32."""
    torch.set_default_dtype(torch.float64)
    try:
        return with_sample_numbers(get_loss(name, **random_params(name, seed))).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def test_every_loss_has_an_oracle() -> None:
    remedy = "write it as a loop over anchors, from its paper, under the name of the loss"
    frozen.check_names("tests/tools/oracles.py", ORACLES, LOSSES, remedy)


def test_every_loss_has_random_parameters() -> None:
    names = [number for name in LOSSES for number in numbers(name)]
    remedy = "enter between which two numbers it is drawn in DRAWN"
    frozen.check_names("tests/tools/oracles.py", DRAWN, names, remedy)


@pytest.mark.parametrize("name", JUDGED)
def test_value(name: str) -> None:
    for seed in range(times(1000)):
        contrast, loss = random_contrast(seed), exact(name, seed)
        expected = ORACLES[name](contrast, **loss.params).item()
        assert loss(contrast).item() == pytest.approx(expected, abs=1e-10, rel=1e-10), (seed, loss)
        error = abs(loss(single(contrast)).item() - expected)
        allowed = 1e-5 * max(1, abs(expected))
        if error > allowed:  # as at the edge of a logarithm, where rounded rows are another value
            allowed = 4 * rounded(loss, contrast)
        assert error <= allowed, (seed, loss)


def rounded(loss: Loss, contrast: Contrast) -> float:
    """How much the loss may change, to first order, if float32 rounds the rows."""
    found = {name: getattr(contrast, name) for name in ROWS}
    rows = {name: x.clone().requires_grad_() for name, x in found.items() if x is not None}
    value = loss(replace(contrast, **rows))
    slopes = torch.autograd.grad(value, [*rows.values()], allow_unused=True, materialize_grads=True)
    return rounding(slopes, [*rows.values()])


@pytest.mark.parametrize("name", JUDGED)
def test_gradient(name: str) -> None:
    for seed in range(times(50)):
        contrast, loss = random_contrast(seed), exact(name, seed)
        kept = (contrast.anchor, contrast.positives(), contrast.keys)
        rows = [x.clone().requires_grad_() for x in kept]  # positives with rows of their own
        leaves = replace(contrast, positive_key=None, **dict(zip(ROWS, rows, strict=True)))
        found, expected = (
            torch.autograd.grad(f, rows, allow_unused=True, materialize_grads=True)
            for f in (loss(leaves), ORACLES[name](leaves, **loss.params))
        )
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
