"""WEINCE on batches whose tails are a tenth of the negatives, against the loop from its code."""

import pytest
import torch

from contrastbench.losses import both_views, get_loss, same_class
from contrastbench.losses.base import block_scores
from contrastbench.losses.laws.random_contrasts import random_views
from contrastbench.losses.library.weince import tails
from oracles import ORACLES, weibull_tail

SETTINGS = {"margin": 0.0, "kappa_rho": 5.0, "kappa_aic": 0.05}


@pytest.mark.parametrize("variant", ["official_code", "paper"])
@pytest.mark.parametrize("samples", [12, 16, 17, 18, 201])
def test_tails_of_every_size(samples: int, variant: str) -> None:
    views = random_views(samples, samples, dim=4)
    loss = get_loss("weince", temperature=0.2, variant=variant, **SETTINGS)
    labels = torch.arange(samples) % 7 % 4  # anchors with more and with fewer negatives
    for contrast in (both_views(*views[:2]), same_class(views[0], None, labels)):
        expected = ORACLES["weince"](contrast, **loss.params)
        assert loss(contrast).item() == pytest.approx(expected.item(), rel=1e-10)
        assert abs(expected - get_loss("infonce", temperature=0.2)(contrast)) > 1e-4


def test_two_points_fit_any_line_so_they_say_nothing() -> None:
    """Rounding would decide between the two tails, and the slope would be any."""
    views = random_views(0, 4)
    three = block_scores(both_views(views[0][:2], views[1][:2]), slice(None))
    assert (tails(three)[:, 2] == -torch.inf).all()
    assert weibull_tail([0.1, 0.2, 0.3]) == (0.0, -torch.inf)
    assert tails(block_scores(both_views(*views[:2]), slice(None)))[:, 2].isfinite().all()
