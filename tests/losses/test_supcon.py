"""What tells supervised contrastive learning from InfoNCE with several positives (SINCERE)."""

import pytest
import torch
from torch import Tensor

from contrastbench.losses import get_loss
from contrastbench.losses.base import Scores
from contrastbench.losses.laws.battery import LAWS, run_law
from contrastbench.losses.library.supcon import SupCon


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


def test_the_form_out_declines_the_law_that_it_breaks() -> None:
    assert "closer positives" in SupCon(form="out").declined_laws
    assert "closer positives" not in SupCon(form="in").declined_laws


@pytest.mark.parametrize(("form", "holds"), [("out", False), ("in", True)])
def test_the_form_in_alone_never_grows_when_positives_come_closer(form: str, holds: bool) -> None:
    (closer_positives,) = [law for law in LAWS if law.name == "closer positives"]

    def build() -> SupCon:
        return SupCon(0.1, form).double()

    assert run_law(closer_positives, build, [0]).passed == holds
