"""Each loss at the edge of its parameters is another, up to the constant in its formula."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cases import random_params
from contrastbench.losses import Contrast, both_views, get_loss, other_view, query_key, whole_row
from contrastbench.losses.laws.random_contrasts import PAIRINGS, random_views
from counts import times

SINGLE = [name for name in PAIRINGS if name != "both_views with positives" and name != "same_class"]


def value(contrast: Contrast, name: str, temperature: float, **params: object) -> Tensor:
    loss: Tensor = get_loss(name, temperature=temperature, **params)(contrast)
    return loss


def adnce(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "adnce", t, sigma=1e6), value(c, "infonce", t)


def hcl(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "hcl", t, tau_plus=0.1, beta=1e-9), value(c, "debiased", t, tau_plus=0.1)


def debiased(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "debiased", t, tau_plus=1e-12), value(c, "infonce", t)


def attentionnce(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "attentionnce", t, d_pos=1e9, d_neg=1e9, variant="paper"), value(
        c, "infonce", t
    )


def rmlcpc_order(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "rmlcpc", t, alpha=0.3, gamma=1 + 1e-7), value(c, "mlcpc", t, alpha=0.3)


def rmlcpc_skew(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "rmlcpc", t, alpha=0, gamma=2), value(c, "renyi", t, gamma=2)


def renyi(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "renyi", t, gamma=1 + 1e-7), value(c, "dv", t)


def mlcpc(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "mlcpc", t, alpha=0), value(c, "dv", t)


def rince(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "rince", t, q=1e-9, lam=0.25), value(c, "infonce", t) + math.log(0.25)


def phi_dro(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "phi_dro", t, phi="cressie_read", k=1 + 1e-8), value(c, "phi_dro", t, phi="kl")


def chi2(c: Contrast, t: float) -> tuple[Tensor, Tensor]:
    return value(c, "phi_dro", t, phi="chi2"), value(c, "phi_dro", t / 2, phi="cressie_read", k=2)


LIMITS: list[Callable[[Contrast, float], tuple[Tensor, Tensor]]] = [
    adnce,
    hcl,
    debiased,
    attentionnce,
    rmlcpc_order,
    rmlcpc_skew,
    renyi,
    mlcpc,
    rince,
    phi_dro,
    chi2,
]


@pytest.mark.parametrize("limit", LIMITS)
@given(seed=st.integers(0, 2**31), temperature=st.floats(0.1, 1), pairing=st.sampled_from(SINGLE))
@settings(max_examples=times(200, least=25), deadline=None, derandomize=True, database=None)
def test_limit(
    limit: Callable[[Contrast, float], tuple[Tensor, Tensor]],
    seed: int,
    temperature: float,
    pairing: str,
) -> None:
    found, expected = limit(PAIRINGS[pairing](random_views(seed, 2 + seed % 6)), temperature)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@given(seed=st.integers(0, 2**31), temperature=st.floats(0.05, 1), size=st.integers(2, 9))
@settings(max_examples=times(200, least=25), deadline=None, derandomize=True, database=None)
def test_constants(seed: int, temperature: float, size: int) -> None:
    """Exact relations: the constants are those that the formulas show."""
    views, t = random_views(seed, size), temperature
    two, cross, key = both_views(*views[:2]), other_view(*views[:2]), query_key(*views[:2])
    row = whole_row(*views[:2])
    negatives = 2 * size - 2
    cpc = value(two, "cpc", t, alpha=1 / (negatives + 1))
    pairs = [
        (cpc, value(two, "infonce", t) - math.log(negatives + 1)),
        (value(two, "npair", t), value(two, "infonce", t)),
        (value(cross, "decoupled", t), value(cross, "infonce", t) + math.log(size - 1)),
        (value(row, "decoupled", t), value(row, "infonce", t)),
        (value(cross, "phi_dro", t, phi="kl"), t * value(cross, "infonce", t)),
        (value(key, "hcl", t, beta=0), value(key, "debiased", t)),
        (value(key, "debiased", t, tau_plus=0), value(key, "infonce", t)),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_alpha_cl_of_power_two_has_the_gradient_of_decoupled() -> None:
    views = random_views(3, 6, grad=True)[:2]
    contrast = both_views(*views)
    found = torch.autograd.grad(value(contrast, "alpha_cl", 0.3, p=2), views, retain_graph=True)
    expected = torch.autograd.grad(0.3 * value(contrast, "decoupled", 0.3), views)
    torch.testing.assert_close(found, expected)


def test_alpha_cl_of_adnces_code_has_half_the_papers_power() -> None:
    """image/model.py, "a_cl": the power is that of 1 - s, the squared distance."""
    contrast = both_views(*random_views(3, 6)[:2])
    found = value(contrast, "alpha_cl", 0.5, p=4, variant="adnce_code")
    torch.testing.assert_close(found, value(contrast, "alpha_cl", 0.5, p=8))
    assert abs(found - value(contrast, "alpha_cl", 0.5, p=4)) > 1e-3


def test_the_papers_dar_is_the_sum_over_pairs_of_differences() -> None:
    """DASL, equation 4: 2N anchors have 2N - 1 differences in a chain."""
    contrast = both_views(*random_views(5, 6)[:2])
    mean, total = (get_loss("dar", reduction=r)(contrast) for r in ("mean", "sum"))
    torch.testing.assert_close(total, 11 * 10 / 2 * mean)


def test_sum_is_the_weighted_sum() -> None:
    contrast = both_views(*random_views(5, 6)[:2])
    params = random_params("infonce", 5)
    expected = get_loss("infonce", **params)(contrast) + 0.5 * get_loss("dar")(contrast)
    torch.testing.assert_close(get_loss("infonce + 0.5*dar", **params)(contrast), expected)
