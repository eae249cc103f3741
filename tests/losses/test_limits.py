"""Each loss at a declared limit is the loss that it names; and which are the same by algebra."""

import math
import runpy
from dataclasses import replace
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
from contrastbench.benchmarks.tables.searches import searched_ranges
from contrastbench.losses import LOSSES, Contrast, LossSpec, both_views, get_loss, other_view
from contrastbench.losses.laws.assertions import Build, check_close, value_and_gradient
from contrastbench.losses.laws.battery import LAWS, run_law
from contrastbench.losses.laws.limits import check_everywhere, check_limit, pairing_of
from contrastbench.losses.laws.random_contrasts import (
    LAW_PAIRINGS,
    random_views,
    with_sample_numbers,
)
from contrastbench.losses.limits import Limit, Towards, inf
from contrastbench.losses.pairing import (
    BOTH_VIEWS,
    OTHER_VIEW,
    QUERY_KEY,
    SAME_CLASS,
    WHOLE_ROW,
    Pairing,
)
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import reduced
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


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("both_views", BOTH_VIEWS),
        ("other_view", OTHER_VIEW),
        ("whole_row", WHOLE_ROW),
        ("query_key", QUERY_KEY),
        ("same_class", replace(SAME_CLASS, two_views=True)),
        ("own_view", replace(BOTH_VIEWS, own_view=True)),
    ],
)
def test_laws_know_the_facts_of_their_pairings(name: str, facts: Pairing) -> None:
    """Else the law of a limit would be asked under no pairing, and hold."""
    assert pairing_of(LAW_PAIRINGS[name](random_views(0, 4))) == facts


@pytest.mark.parametrize(
    ("loss", "pairing", "label"),
    [
        (LossSpec("hcl", {"beta": 0, "tau_plus": 0}), BOTH_VIEWS, "infonce(temperature=0.5)"),
        (LossSpec("supcon", {"temperature": 0.2}), BOTH_VIEWS, "infonce(temperature=0.2)"),
        (LossSpec("supcon"), SAME_CLASS, "supcon(temperature=0.5, form=out)"),
        (LossSpec("macl", {"alpha": 0.0}), BOTH_VIEWS, "decoupled(temperature=0.5)"),
        (LossSpec("dcl", {"tau_plus": 0.0, "temperature": 0.2}), None, "infonce(temperature=0.2)"),
        (LossSpec("hcl", {"beta": 0}), BOTH_VIEWS, "debiased(temperature=0.5, tau_plus=0.1)"),
        (LossSpec("decoupled"), OTHER_VIEW, "infonce(temperature=0.5)"),
        (LossSpec("decoupled"), BOTH_VIEWS, "decoupled(temperature=0.5)"),
        (LossSpec("cpc", {"alpha": 0}), WHOLE_ROW, "infonce(temperature=0.5)"),
        (LossSpec("npair"), BOTH_VIEWS, "infonce(temperature=1.0)"),
        (LossSpec("rmlcpc", {"alpha": 0}), None, "renyi(temperature=0.5, gamma=2.0)"),
        (LossSpec("infonce + 0.5*dar"), None, LossSpec("infonce + 0.5*dar").complete.label),
        (LossSpec("none"), None, "none"),
    ],
)
def test_reduced(loss: LossSpec, pairing: Pairing | None, label: str) -> None:
    assert reduced(loss, pairing).label == label


@pytest.mark.parametrize(
    ("loss", "pairing", "found"),
    [
        (LossSpec("decoupled"), OTHER_VIEW, LossSpec("infonce")),
        (LossSpec("decoupled"), BOTH_VIEWS, LossSpec("decoupled")),
        (LossSpec("hcl"), None, LossSpec("hcl")),
        (LossSpec("hcl", {"beta": 0.0, "tau_plus": 0.0}), None, LossSpec("infonce")),
        (LossSpec("hcl", {"beta": 0.0}), None, LossSpec("debiased")),
        (LossSpec("npair"), BOTH_VIEWS, LossSpec("infonce")),
        (LossSpec("none"), None, LossSpec("none")),
    ],
)
def test_reduced_while_the_rest_is_searched(
    loss: LossSpec, pairing: Pairing | None, found: LossSpec
) -> None:
    assert reduced(loss, pairing, searched_ranges(loss)) == found


@given(
    name=st.sampled_from([name for name in LOSSES if describe(name).limits]),
    pairing=st.sampled_from(list(LAW_PAIRINGS)),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=times(400, least=80), deadline=None, derandomize=True, database=None)
def test_what_is_reduced_trains_alike(name: str, pairing: str, seed: int) -> None:
    params = random_params(name, seed)
    exact = [limit.near for limit in describe(name).limits if limit.exact]
    if exact and seed % 2:
        params |= exact[seed // 2 % len(exact)]
    views = random_views(seed, 2 + seed % 6, grad=True)
    contrast = LAW_PAIRINGS[pairing](views)
    loss = LossSpec(name, params)
    other = reduced(loss, pairing_of(contrast))
    _, *gradients = value_and_gradient(
        with_sample_numbers(get_loss(name, **params).double()), contrast, views
    )
    again = with_sample_numbers(get_loss(other.name, **other.params).double())
    for gradient, wanted in zip(
        gradients, value_and_gradient(again, contrast, views)[1:], strict=True
    ):
        check_close(gradient, wanted, 1e-9)


def test_a_circle_of_limits_ends(tmp_path, monkeypatch) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from contrastbench.losses.library.infonce import InfoNCE\n"
        "from contrastbench.losses.limits import Limit, reduces\n"
        "class A(InfoNCE):\n"
        f"    limits = reduces(Limit({str(path) + ':B'!r}))\n"
        "class B(InfoNCE):\n"
        f"    limits = reduces(Limit({str(path) + ':A'!r}))\n"
    )
    loss = LossSpec(f"{path}:A")
    assert reduced(loss, None, ["temperature"]) == loss, "a limit runs no code of a file"
    monkeypatch.setattr("contrastbench.losses.spec.is_registered", lambda name: True)
    assert reduced(loss, None).name in (f"{path}:A", f"{path}:B")
