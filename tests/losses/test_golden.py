"""Our losses against the values and gradients that the published codes give."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from contrastbench.losses import Loss, both_views, get_loss, other_view, query_key, whole_row

Views = Sequence[Tensor]
Forward = Callable[[Loss, Views], Tensor]


def symmetric(loss: Loss, views: Views) -> Tensor:
    """Two online views and any local crops meet the target of the other view; the sum of both."""
    q1, q2, k1, k2, *local = views
    total: Tensor = loss(query_key([q1, *local], k2.detach())) + loss(
        query_key([q2, *local], k1.detach())
    )
    return total


def times_two_tau(loss: Loss, views: Views) -> Tensor:
    """MoCo v3's factor."""
    return 2 * float(loss.params["temperature"]) * symmetric(loss, views)


SCHEMES: dict[
    str, tuple[int, list[int], Forward]
] = {  # name -> number of views, those with a gradient, the loss
    "two_view_both": (2, [0, 1], lambda loss, views: loss(both_views(views[0], views[1]))),
    "cross_view_exclude_positive_mean": (
        2,
        [0, 1],
        lambda loss, views: loss(other_view(views[0], views[1])),
    ),
    "cross_view_row": (2, [0, 1], lambda loss, views: loss(whole_row(views[0], views[1]))),
    "two_anchors_four_positives_both": (
        6,
        [0, 1, 2, 3, 4, 5],
        lambda loss, views: loss(both_views(views[0], views[1], positives=views[2:])),
    ),
    "query_key_symmetric": (4, [0, 1], symmetric),
    "query_key_multicrop_2local": (6, [0, 1, 4, 5], symmetric),
    "query_key_symmetric_times_2T": (4, [0, 1], times_two_tau),
}
GRADIENT_FORM = (
    "_gradient_form"  # the code prints a surrogate's value; only its gradient is the loss's
)


def check(case: dict[str, Any], all_views: Tensor) -> None:
    name, scheme, params = case["loss"], case["scheme"], dict(case["params"])
    if name == "mlcpc" + GRADIENT_FORM:
        assert params.pop("gamma") == 1
    count, online, forward = SCHEMES[scheme]
    views = [v.clone().requires_grad_() for v in all_views[:count]]
    value = forward(
        get_loss(name.removesuffix(GRADIENT_FORM).replace("dcl", "debiased"), **params), views
    )
    gradients = torch.autograd.grad(value, [views[i] for i in online])
    if not name.endswith(GRADIENT_FORM):
        assert value.item() == pytest.approx(case["value"], abs=1e-9, rel=0)
    assert [g.norm().item() for g in gradients] == pytest.approx(case["grad"], abs=1e-9, rel=0)
    assert gradients[0][0].tolist() == pytest.approx(case["grad_view0_row0"], abs=1e-9, rel=0)


def test_value_and_gradient_of_the_published_codes(shared: Callable[..., Path]) -> None:
    golden = json.loads(shared("golden", "losses.json").read_text())
    all_views = torch.tensor(golden["views"], dtype=torch.float64)
    assert len(golden["cases"]) == 44
    for case in golden["cases"]:
        check(case, all_views)
