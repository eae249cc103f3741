"""Our losses against golden.json, values and gradients that published codes gave."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from contrastbench.losses import Loss, get_loss
from contrastbench.losses.contrast import (
    both_views,
    other_view,
    own_view,
    query_key,
    same_class,
    whole_row,
)

Json = dict[str, Any]
Views = Sequence[Tensor]

FOLDER = Path(__file__).parent
GOLDEN: Json = json.loads((FOLDER / "golden.json").read_text())
LABELS = torch.tensor(GOLDEN["labels"])
TOLERANCE = 1e-11  # released gradients have twelve decimals; sums in another order move 1e-14


def both_directions(loss: Loss, views: Views) -> Tensor:
    """Two online views and any local crops meet the target of the other view; the sum of both."""
    q1, q2, k1, k2, *local = views
    one, two = (query_key([q, *local], k.detach()) for q, k in ((q1, k2), (q2, k1)))
    total: Tensor = loss(one) + loss(two)
    return total


def within_each_view(loss: Loss, views: Views) -> Tensor:
    """The negatives of each view's rows are its other rows; the sum of both views."""
    total: Tensor = loss(own_view(*views)) + loss(own_view(*views[::-1]))
    return total


PAIRINGS: dict[str, Callable[[Loss, Views], Tensor]] = {
    "both_views": lambda loss, v: loss(both_views(v[0], v[1], positives=v[2:])),
    "other_view": lambda loss, v: loss(other_view(*v)),
    "whole_row": lambda loss, v: loss(whole_row(*v)),
    "same_class": lambda loss, v: loss(same_class(*v, LABELS)),
    "own_view": lambda loss, v: loss(own_view(*v)),
    "own_view, both directions": within_each_view,
    "uniformity within each view": lambda loss, v: within_each_view(loss, v) / 2,
    "query_key": lambda loss, v: loss(query_key(*v)),
    "query_key, both directions": both_directions,
    "query_key, both directions, times 2 temperature": lambda loss, v: (
        2 * float(loss.params["temperature"]) * both_directions(loss, v)
    ),
}


def cases() -> Iterator[Any]:
    for group in GOLDEN["released"]:
        for case in group["cases"]:
            name = f"{group['loss']} {group['pairing']} {group['views']} {case['params']}"
            yield pytest.param(group, case, id=name)


def make(group: Json, case: Json) -> Loss:
    loss = get_loss(group["loss"], **case["params"]).double()
    for learned, value in case.get("learned", {}).items():
        assert isinstance(getattr(loss, learned), nn.Parameter)
        setattr(loss, learned, nn.Parameter(torch.tensor(value, dtype=torch.float64)))
    return loss


def agree(found: Any, expected: Any) -> None:
    found, expected = (torch.as_tensor(x, dtype=torch.float64) for x in (found, expected))
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(("group", "case"), [*cases()])
def test_value_and_gradients(group: Json, case: Json) -> None:
    inputs = torch.tensor(GOLDEN["views"][: group["views"]], dtype=torch.float64)
    views = [view.requires_grad_() for view in inputs.clone().unbind()]
    loss = make(group, case)
    value = PAIRINGS[group["pairing"]](loss, views)
    online = views[:2] + views[4:] if group["pairing"].startswith("query_key") else views
    gradients = torch.autograd.grad(value, [*online, *loss.parameters()])
    if "value" in case:
        agree(value, case["value"])
    agree([g.norm() for g in gradients[: len(online)]], case["gradient_norms"])
    agree(gradients[0][0], case["gradient_row"])
    learned = dict(loss.named_parameters())
    assert learned.keys() == case.get("learned_gradients", {}).keys()
    for name, gradient in zip(learned, gradients[len(online) :], strict=True):
        agree(gradient, case["learned_gradients"][name])


@pytest.mark.parametrize("group", GOLDEN["released"], ids=lambda group: group["place"])
def test_a_released_value_names_the_state_of_its_code(group: Json) -> None:
    assert group["formula"]
    assert group["repository"].startswith("https://")
    assert group.get("release") or re.fullmatch("[0-9a-f]{40}", group.get("commit", ""))
