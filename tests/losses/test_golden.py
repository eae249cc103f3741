"""Our losses against the values and gradients that the published codes give."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from contrastbench.losses import both_views, get_loss, other_view, whole_row

SCHEMES = {
    "two_view_both": both_views,
    "cross_view_exclude_positive_mean": other_view,
    "cross_view_row": whole_row,
}


@pytest.mark.parametrize("loss", ["infonce", "adnce"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_value_and_gradient_of_the_published_code(loss: str, scheme: str, shared: Callable[..., Path]) -> None:
    golden = json.loads(shared("golden", "losses.json").read_text())
    cases = [c for c in golden["cases"] if (c["loss"], c["scheme"]) == (loss, scheme)]
    assert len(cases) >= 3
    for case in cases:
        views = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in golden["views"][:2]]
        value = get_loss(loss, **case["params"])(SCHEMES[scheme](*views))
        gradients = torch.autograd.grad(value, views)
        assert value.item() == pytest.approx(case["value"], abs=1e-9, rel=0)
        assert [g.norm().item() for g in gradients] == pytest.approx(case["grad"], abs=1e-9, rel=0)
        assert gradients[0][0].tolist() == pytest.approx(case["grad_view0_row0"], abs=1e-9, rel=0)
