"""The theorems behind the losses, as numbers."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from contrastbench.losses import ScoreLoss, get_loss
from contrastbench.losses.base import Scores

NEGATIVES = torch.tensor([[-0.7, -0.2, 0.0, 0.1, 0.35, 0.5, 0.8]], dtype=torch.float64)
POSITIVE = torch.tensor([[0.6]], dtype=torch.float64)


def scores(pos: Tensor = POSITIVE, neg: Tensor = NEGATIVES) -> Scores:
    """Positives out of the denominator and a mean over the negatives, as in ADNCE's equation 1."""
    return Scores(
        pos, neg, torch.full((len(neg), 1), float(neg.shape[1]), dtype=neg.dtype), False, True
    )


def of_scores(name: str, pos: Tensor = POSITIVE, neg: Tensor = NEGATIVES, **params: Any) -> Tensor:
    loss = get_loss(name, **params)
    assert isinstance(loss, ScoreLoss)
    return loss.combine(loss.terms(scores(pos, neg)))


def weights(name: str, neg: Tensor = NEGATIVES, **params: Any) -> Tensor:
    leaf = neg.clone().requires_grad_()
    return torch.autograd.grad(of_scores(name, neg=leaf, **params), leaf)[0]


def dual(alpha: float, radius: float) -> float:
    """Equation 4 before its minimum, without positives: alpha eta + alpha log E exp(s / alpha)."""
    return alpha * radius + alpha * math.log(torch.exp(NEGATIVES / alpha).mean().item())


def optimal_temperature(radius: float) -> float:
    found = minimize_scalar(
        dual, args=(radius,), bounds=(1e-2, 1e4), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x)


def worst_distribution(radius: float) -> Tensor:
    """Equation 3 by brute force: the Q of the largest mean score among those within the radius."""
    neg, n = NEGATIVES[0].numpy(), NEGATIVES.shape[1]
    constraints = [
        {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
        {
            "type": "ineq",
            "fun": lambda q: radius - (q * np.log(q * n)).sum(),
            "jac": lambda q: -np.log(q * n) - 1,
        },
    ]
    start, bounds = np.full(n, 1 / n), [(1e-9, 1)] * n
    options = {"maxiter": 1000, "ftol": 1e-14}
    found = minimize(
        lambda q: -(q @ neg),
        start,
        method="SLSQP",
        jac=lambda q: -neg,
        bounds=bounds,
        constraints=constraints,
        options=options,
    )
    assert found.success, found.message
    return torch.tensor(found.x)


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.4])
def test_infonce_is_kl_dro(radius: float) -> None:
    """Theorem 3.2: the CL-DRO objective is alpha* InfoNCE(alpha*) + alpha* eta."""
    alpha, worst = optimal_temperature(radius), worst_distribution(radius)
    objective = -POSITIVE.item() + (worst * NEGATIVES[0]).sum().item()
    assert alpha * of_scores("infonce", temperature=alpha).item() + alpha * radius == pytest.approx(
        objective, abs=1e-7
    )


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.4])
def test_worst_case_weights(radius: float) -> None:
    """Q* is proportional to exp(s / tau), as are the weights in InfoNCE's gradient."""
    tau = optimal_temperature(radius)
    expected = torch.softmax(NEGATIVES / tau, dim=1)
    torch.testing.assert_close(worst_distribution(radius), expected[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(tau * weights("infonce", temperature=tau), expected)


def test_optimal_temperature() -> None:
    """Corollary 3.4: tau is about sqrt(V / 2 eta), the better the smaller the radius."""
    variance = NEGATIVES.var(correction=0).item()
    errors = [
        abs(optimal_temperature(eta) / math.sqrt(variance / (2 * eta)) - 1)
        for eta in (1e-2, 1e-4, 1e-6)
    ]
    assert errors[0] < 0.1
    assert errors[1] < errors[0] / 8
    assert errors[2] < errors[1] / 8


def test_mean_variance_is_the_second_order_expansion() -> None:
    """Theorem 3.5: tau InfoNCE - (mean + V / 2 tau) is the third cumulant / 6 tau^2 and less."""
    third = (NEGATIVES - NEGATIVES.mean()).pow(3).mean().item()
    for tau in (1e2, 1e3):
        rest = tau * of_scores("infonce", temperature=tau) - of_scores(
            "mean_variance", temperature=tau
        )
        assert rest.item() * 6 * tau**2 == pytest.approx(third, abs=1 / tau)


def importance_weighted(pos: Tensor, neg: Tensor, alpha: float, gamma: float) -> Tensor:
    """RényiCL's Algorithm 1 on scores over tau, weights detached; gamma = 1 is MLCPC."""
    first = ((gamma - 1) * pos.detach()).exp()
    second_pos, second_neg = (gamma * pos.detach()).exp(), (gamma * neg.detach()).exp()
    mixed = alpha * (pos * second_pos).mean() + (1 - alpha) * (neg * second_neg).mean()
    return (
        mixed / (alpha * second_pos.mean() + (1 - alpha) * second_neg.mean())
        - (pos * first).mean() / first.mean()
    )


@pytest.mark.parametrize("gamma", [1.0, 1.2, 2.0, 3.0])
@pytest.mark.parametrize("alpha", [0.0, 2**-12, 0.3])
def test_rmlcpc_has_the_gradient_of_its_importance_weights(alpha: float, gamma: float) -> None:
    generator = torch.Generator().manual_seed(0)
    draw = [
        2 * torch.rand(shape, dtype=torch.float64, generator=generator) - 1
        for shape in ((5, 3), (5, 7))
    ]
    pos, neg = (s.requires_grad_() for s in draw)
    order = {} if gamma == 1 else {"gamma": gamma}
    loss = of_scores(
        "mlcpc" if gamma == 1 else "rmlcpc", pos, neg, temperature=0.2, alpha=alpha, **order
    )
    expected = torch.autograd.grad(
        importance_weighted(pos / 0.2, neg / 0.2, alpha, gamma), (pos, neg)
    )
    torch.testing.assert_close(torch.autograd.grad(loss, (pos, neg)), expected)
