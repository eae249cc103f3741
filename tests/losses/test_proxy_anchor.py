"""Proxy Anchor against a loop from its equation, and against pytorch-metric-learning."""

import math

import pytest
import torch
from torch import Tensor, nn

from contrastbench.losses import Loss, get_loss, same_class

CLASSES, DIM = 5, 6


def case(seed: int, **params: float) -> tuple[Loss, Tensor, Tensor]:
    """A loss with proxies, embeddings, and their classes, of which one is missing in most."""
    torch.manual_seed(seed)
    loss = get_loss("proxy_anchor", **params)
    loss.prepare(CLASSES, DIM)
    z = torch.randn(9, DIM, dtype=torch.float64, requires_grad=True)
    return loss.double(), z, torch.randint(0, CLASSES - 1, (9,)).sort().values


def equation_4(proxies: Tensor, z: Tensor, labels: Tensor, alpha: float, margin: float) -> Tensor:
    """Kim et al. 2020, proxy by proxy."""
    near, far = [], []
    for c, proxy in enumerate(proxies):
        s = [x @ proxy / x.norm() / proxy.norm() for x in z]
        own = [-alpha * (v - margin) for v, label in zip(s, labels, strict=True) if label == c]
        others = [alpha * (v + margin) for v, label in zip(s, labels, strict=True) if label != c]
        if own:
            near.append(torch.stack(own).exp().sum().log1p())
        far.append(torch.stack(others).exp().sum().log1p())
    return torch.stack(near).mean() + torch.stack(far).mean()


def gradients(value: Tensor, *leaves: Tensor) -> list[Tensor]:
    return [value.detach(), *torch.autograd.grad(value, leaves)]


@pytest.mark.parametrize("seed", range(20))
def test_value_and_gradients_are_those_of_the_equation(seed: int) -> None:
    loss, z, labels = case(seed, alpha=1 + seed, margin=0.05 * seed - 0.3)
    found = gradients(loss(same_class(z, None, labels)), z, loss.proxies)
    expected = equation_4(loss.proxies, z, labels, loss.alpha, loss.margin)
    for a, b in zip(found, gradients(expected, z, loss.proxies), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_value_and_gradients_are_those_of_pytorch_metric_learning(seed: int) -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses", reason='pip install "[perf]"')
    loss, z, labels = case(seed)
    theirs = losses.ProxyAnchorLoss(CLASSES, DIM, margin=0.1, alpha=32).double()
    theirs.proxies = nn.Parameter(loss.proxies.detach().clone())
    found = gradients(loss(same_class(z, None, labels)), z, loss.proxies)
    for a, b in zip(found, gradients(theirs(z, labels), z, theirs.proxies), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def test_absent_classes_have_no_anchor_and_large_scales_are_finite() -> None:
    loss, z, _ = case(0, alpha=1e4)
    value, *slopes = gradients(loss(same_class(z, None, torch.zeros(9).long())), z, loss.proxies)
    assert all(math.isfinite(x.sum()) for x in (value, *slopes))


def test_proxies_have_a_rate_of_their_own_in_sums_too() -> None:
    loss = get_loss("proxy_anchor + 0.1*dar", lr=0.05)
    assert loss.needs_classes
    loss.prepare(CLASSES, DIM)
    (group,) = loss.parameter_groups()
    assert group["lr"] == 0.05
    assert [p.shape for p in group["params"]] == [(CLASSES, DIM)]
    loss.prepare(8, 512)
    assert 0.45 < next(loss.parameters()).std() < 0.55, "Kaiming's square root of 2 / classes"
