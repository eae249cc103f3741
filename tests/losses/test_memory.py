"""Losses that learn, or keep numbers of each sample: gradients, records, blocks and mistakes."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from contrastbench.losses import LossSpec, UserError, get_loss
from contrastbench.losses.base import FINITE_HOLE
from contrastbench.losses.contrast import Contrast, both_views, indexed, query_key, same_class
from contrastbench.losses.laws import check_loss
from contrastbench.losses.laws.random_contrasts import random_views
from contrastbench.losses.library.sogclr import SogCLR

FOLDER = Path(__file__).parent
LIBAUC = json.loads((FOLDER / "libauc.json").read_text())
VIEWS = torch.tensor(json.loads((FOLDER / "golden.json").read_text())["views"], dtype=torch.float64)
NAMES = ("sogclr", "isogclr")
SAMPLES = 8


def made(name: str, samples: int = SAMPLES, **params: Any) -> Any:
    loss = get_loss(name, **params).double()
    loss.prepare_samples(samples)
    return loss


def paired(views: Sequence[Tensor], rows: Sequence[int]) -> Contrast:
    return indexed(both_views(*views), torch.tensor(rows))


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    found, expected = (torch.as_tensor(x, dtype=torch.float64) for x in (found, expected))
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "case", LIBAUC["cases"], ids=lambda case: f"{case['loss']} {case['params']}"
)
def test_steps_of_libauc(case: dict[str, Any]) -> None:
    loss = made(case["loss"], **case["params"])
    for number, step in enumerate(case["steps"]):
        pair = VIEWS[number // 2 * 2 :][:2, step["rows"]]
        views = [view.clone().requires_grad_() for view in pair]
        gradients = torch.autograd.grad(2 * loss(paired(views, step["rows"])), views)
        close([g.norm() for g in gradients], step["gradient_norms"])
        close(gradients[0][0], step["gradient_row"])
        close(loss.log_u.exp(), step["u"])
        if "temperatures" in step:
            close(loss.temperatures, step["temperatures"])


@pytest.mark.parametrize("name", NAMES)
def test_float32_keeps_what_its_exponential_could_not_hold(name: str) -> None:
    loss = get_loss(name, temperature=0.005, **({"eta": 0} if name == "isogclr" else {}))
    loss.prepare_samples(SAMPLES)
    z = torch.eye(4)[:, :1].expand(4, 4) + 1e-3 * torch.eye(4)
    for _ in range(2):
        views = [(z + 0.1).requires_grad_(), (z + 0.1).requires_grad_()]
        value = loss(paired(views, [0, 1, 2, 3]))
        assert value.isfinite()
        assert all(g.isfinite().all() for g in torch.autograd.grad(value, views))
    assert loss.log_u[:4].min() > 100, "e^100 is beyond float32"


@pytest.mark.parametrize("name", [*NAMES, "infonce + 0.5*sogclr"])
def test_a_contrast_without_an_index_is_refused(name: str) -> None:
    loss, views = get_loss(name), random_views(0, 3)[:2]
    with pytest.raises(UserError, match=r"sogclr keeps .* call its prepare_samples\(n\)"):
        loss(paired(views, [0, 1, 2]))
    loss.prepare_samples(2)
    with pytest.raises(UserError, match=r"has no index: give indexed\(contrast, rows\)"):
        loss(both_views(*views))
    with pytest.raises(UserError, match="index must be a row from 0 to 1"):
        loss(paired(views, [0, 1, 2]))


def test_an_index_has_one_number_for_each_sample() -> None:
    one, two, three = random_views(0, 4)
    rows = torch.tensor([9, 7, 5, 3])
    assert indexed(query_key([one, two], three), rows).index.tolist() == 2 * rows.tolist()
    assert indexed(same_class(one, None, rows), rows).index.tolist() == rows.tolist()
    for wrong in (rows[:3], rows[:0], rows[:, None], torch.arange(16)):
        with pytest.raises(UserError, match="give one number for each sample of the batch"):
            indexed(both_views(one, two), wrong)


def test_a_record_sums_up_what_is_kept() -> None:
    sogclr: SogCLR = made("sogclr")
    sogclr(paired(random_views(0, 3)[:2], [0, 1, 2]))
    assert sogclr.remembered()["mean_log_u"] == sogclr.log_u[:3].mean()


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
