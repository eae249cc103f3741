"""What tells supervised contrastive learning from InfoNCE with several positives (SINCERE)."""

import pytest
import torch
from torch import Tensor

from contrastbench.losses import get_loss
from contrastbench.losses.base import Scores
from contrastbench.losses.laws.battery import run
from contrastbench.losses.laws.learning import check_closer_positives
from contrastbench.losses.supcon import SupCon


def slopes(name: str, **params: object) -> Tensor:
    """Gradient in three positives of one anchor, one of them much closer, over two negatives."""
    pos = torch.tensor([[0.9, 0.1, 0.0]], dtype=torch.float64, requires_grad=True)
    neg = torch.tensor([[0.0, -0.2]], dtype=torch.float64)
    loss = get_loss(name, temperature=0.1, **params)
    value = loss.terms(Scores(pos, neg, torch.full((1, 1), 2.0))).sum()
    (gradient,) = torch.autograd.grad(value, pos)
    return gradient[0]


def test_supcon_pushes_the_closest_positive_away_and_infonce_none() -> None:
    closest, *others = slopes("supcon", form="out").tolist()
    assert closest > 1
    assert all(slope < 0 for slope in others)
    assert (slopes("infonce") < 0).all()
    assert (slopes("supcon", form="in") < 0).all()


@pytest.mark.parametrize("form", ["out", "in"])
def test_the_battery_knows_that_it_balances_positives(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def passed() -> bool:
        return run(check_closer_positives, lambda: get_loss("supcon", 0.1, form), [0]).passed

    def get_loss(name: str, temperature: float, form: str) -> SupCon:
        return SupCon(temperature, form).double()

    assert passed()
    monkeypatch.setattr(SupCon, "balances_positives", False)
    assert passed() == (form == "in")
