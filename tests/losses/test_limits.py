"""Each loss at a declared limit is the loss that it names, in value and gradient."""

import math
import runpy
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cases import random_params
from contrastbench.losses import LOSSES, Contrast, both_views, get_loss, other_view
from contrastbench.losses.laws.assertions import Build
from contrastbench.losses.laws.battery import LAWS, run_law
from contrastbench.losses.laws.limits import check_everywhere, check_limit
from contrastbench.losses.laws.random_contrasts import (
    LAW_PAIRINGS,
    random_views,
    with_sample_numbers,
)
from contrastbench.losses.limits import Limit, Towards, inf
from contrastbench.losses.registry import describe
from counts import times

DOCS = Path(__file__).parents[2] / "docs"
DECLARED = [name for name in LOSSES if describe(name).limits]


def value(contrast: Contrast, name: str, temperature: float, **params: object) -> Tensor:
    loss: Tensor = get_loss(name, temperature=temperature, **params)(contrast)
    return loss


@pytest.mark.parametrize("name", DECLARED)
@given(seed=st.integers(0, 2**31), pairing=st.sampled_from(list(LAW_PAIRINGS)))
@settings(max_examples=times(100, least=10), deadline=None, derandomize=True, database=None)
def test_limits(name: str, seed: int, pairing: str) -> None:
    params = random_params(name, seed)
    for limit in describe(name).limits:
        check_limit(limit, builder(name, **params), LAW_PAIRINGS[pairing], seed)


def builder(name: str, **params: Any) -> Build:
    """Makes the loss in float64, with some parameters changed."""
    return lambda **changed: with_sample_numbers(get_loss(name, **{**params, **changed}).double())


def test_the_figure_shows_the_declared_limits() -> None:
    script = runpy.run_path(str(DOCS / "plot_limits.py"))
    drawn = script["drawn"]()
    assert drawn == (DOCS / "limits.svg").read_text(encoding="utf-8"), "run docs/plot_limits.py"
    ElementTree.fromstring(drawn)
    assert all(f">{name}<" in drawn for name in DECLARED)


WRONG: dict[str, tuple[str, Limit]] = {
    "another value": ("debiased", Limit("infonce", {"tau_plus": 0.01})),
    "not near enough": ("adnce", Limit("infonce", {"sigma": Towards(inf, near=10.0)})),
    "a constant that is not declared": ("rince", Limit("infonce", {"q": Towards(0, near=1e-9)})),
    "a factor that is not declared": ("phi_dro", Limit("decoupled", constant=True)),
    "a pairing that is not declared": ("decoupled", Limit("infonce", constant=True)),
    "one positive that is not declared": (
        "attentionnce",
        Limit("infonce", {"d_neg": Towards(inf, near=1e9), "variant": "paper"}),
    ),
    "equal gradients alone": (
        "alpha_cl",
        Limit("decoupled", {"p": 2, "variant": "paper"}, constant=True, factor="temperature"),
    ),
    "another loss": ("mlcpc", Limit("infonce", {"alpha": 0})),
    "equal values where gradients alone are": ("macl", Limit("decoupled", {"alpha": 0})),
    "several positives of SupCon": ("supcon", Limit("infonce")),
    "the sum of SigLIP": ("siglip", Limit("jsd", {"bias": 0}, constant=True, at_start=True)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_declaration_fails(wrong: str) -> None:
    name, limit = WRONG[wrong]
    with pytest.raises(AssertionError, match="apart from"):
        check_everywhere(limit, builder(name))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("", "", ""),
        ('"margin": 0', '"margin": 0.1', "both_views: it is declared as infonce for margin = 0.1"),
        ('"infonce"', '"infonec"', "unknown loss 'infonec': did you mean 'infonce'"),
        ('"margin": 0', '"margni": 0', "unknown parameter of"),
    ],
)
def test_a_loss_of_ones_own_is_held_to_its_limits(tmp_path, old: str, new: str, why: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN.replace(old, new))
    found = run_law(LAWS[-1], partial(get_loss, f"{path}:Mine"), [1])
    assert found.passed == (not why)
    assert why in found.detail


OWN = """
from contrastbench.losses import ScoreLoss
from contrastbench.losses.limits import Limit, reduces

class Mine(ScoreLoss):
    limits = reduces(Limit("infonce", {"margin": 0}))

    def __init__(self, temperature: float = 0.5, margin: float = 0.1) -> None:
        super().__init__()
        self.temperature, self.margin = temperature, margin

    def terms(self, scores):
        pos, neg = (scores.pos - self.margin) / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg))
"""


@given(seed=st.integers(0, 2**31), temperature=st.floats(0.05, 1), size=st.integers(2, 9))
@settings(max_examples=times(100, least=10), deadline=None, derandomize=True, database=None)
def test_constants(seed: int, temperature: float, size: int) -> None:
    """The constants are those that the formulas show."""
    views, t = random_views(seed, size), temperature
    two, cross = both_views(*views[:2]), other_view(*views[:2])
    negatives = 2 * size - 2
    cpc = value(two, "cpc", t, alpha=1 / (negatives + 1))
    pairs = [
        (cpc, value(two, "infonce", t) - math.log(negatives + 1)),
        (value(cross, "decoupled", t), value(cross, "infonce", t) + math.log(size - 1)),
        (value(cross, "phi_dro", t, phi="kl"), t * value(cross, "infonce", t)),
        (
            value(two, "phi_dro", t, phi="chi2"),
            value(two, "phi_dro", t / 2, phi="cressie_read", k=2),
        ),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_the_papers_dar_is_the_sum_over_pairs_of_differences() -> None:
    """DASL, equation 4: 2N anchors have 2N - 1 differences in a chain."""
    contrast = both_views(*random_views(5, 6)[:2])
    mean, total = (get_loss("dar", reduction=r)(contrast) for r in ("mean", "sum"))
    torch.testing.assert_close(total, 11 * 10 / 2 * mean)
