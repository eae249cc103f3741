"""Parameters of a loss's own: gradients, records, groups of an optimizer, classes."""

import copy
from pathlib import Path

import pytest
import torch

from contrastbench.losses import LossSpec, both_views, get_loss
from contrastbench.losses.base import FINITE_HOLE
from contrastbench.losses.laws import check_loss
from contrastbench.losses.laws.random_contrasts import random_views

FILE = Path(__file__).with_name("learned.py")


@pytest.mark.parametrize("name", ["Temperature", "Scale"])
def test_learned_losses_pass_the_battery(name: str) -> None:
    assert [result for result in check_loss(f"{FILE}:{name}", [0]) if not result.passed] == []


def test_a_loss_of_proxies_has_the_gradients_and_the_state_that_the_battery_asks_for() -> None:
    results = check_loss(f"{FILE}:Proxy", seeds=[0])
    assert [result for result in results if not result.passed] == []
    assert {"scalar", "batch size", "learning", "state"} <= {result.name for result in results}


def test_a_record_holds_the_initial_value() -> None:
    spec = LossSpec(f"{FILE}:Temperature", {"temperature": 0.07})
    loss = spec.make()
    contrast = both_views(*random_views(0, 6, dtype=torch.float32)[:2])
    torch.optim.SGD(loss.parameter_groups()).step(lambda: backward(loss, contrast))
    assert loss.temperature.item() != pytest.approx(0.07, abs=1e-6)
    assert loss.params == copy.deepcopy(loss).params == {"temperature": 0.07, "lr": 0.01}
    assert spec.complete == LossSpec("learned", {"temperature": 0.07, "lr": 0.01})
    assert repr(loss) == "Temperature(temperature=0.07, lr=0.01)"


def backward(loss, contrast) -> float:
    value = loss(contrast)
    value.backward()
    return value.item()


def test_groups_have_the_rates_that_losses_want() -> None:
    loss = get_loss(f"infonce + {FILE}:Temperature + {FILE}:Scale", lr=0.2)
    temperature, scale = loss.parameter_groups()
    assert temperature["lr"] == 0.2
    assert "lr" not in scale
    optimizer = torch.optim.SGD([{"params": [torch.ones(1)]}, temperature, scale], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2, 0.1]
    assert get_loss("infonce").parameter_groups() == []


def test_classes_reach_the_terms_that_need_them() -> None:
    loss = get_loss(f"infonce + {FILE}:Proxy")
    assert loss.needs_classes
    loss.prepare(7, 8)
    assert loss.losses[1].proxies.shape == (7, 8)
    assert not get_loss("infonce + 0.5*dar").needs_classes


def test_holes_are_finite_only_where_something_is_learned() -> None:
    learned = get_loss(f"{FILE}:Temperature")
    assert learned.hole == FINITE_HOLE
    assert learned.requires_grad_(False).hole == get_loss("infonce").hole == -torch.inf
