"""The worst case's multiplier comes from detached scores: its derivative must be there."""

import pytest
import torch
from torch.autograd import gradcheck

from contrastbench.losses import both_views, get_loss
from contrastbench.losses.base import Scores
from contrastbench.losses.laws.random_contrasts import random_views
from contrastbench.losses.library.phi_dro import worst_lambda


@pytest.mark.parametrize(
    ("phi", "k"), [("kl", 1.5), ("chi2", 1.5), ("cressie_read", 1.5), ("cressie_read", 1.1)]
)
def test_gradients_with_nothing_frozen(phi: str, k: float) -> None:
    loss = get_loss("phi_dro", phi=phi, k=k)
    for seed in range(5):
        views = random_views(seed, 3, dim=2, grad=True)[:2]
        assert gradcheck(lambda a, b: loss(both_views(a, b)), views, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("k", [1.01, 1.5, 2.0])
def test_worst_weights_have_mean_one(k: float, tau: float) -> None:
    neg = 2 * torch.rand(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1
    scores = Scores(neg[:, :1], neg, torch.full((50, 1), 6.0, dtype=torch.float64))
    weight = (1 + (k - 1) * (neg - worst_lambda(scores, neg, tau, k)) / tau).clamp_min(0) ** (
        1 / (k - 1)
    )
    torch.testing.assert_close(
        weight.mean(dim=1), torch.ones(50, dtype=torch.float64), rtol=0, atol=1e-12
    )
