"""Which losses are the same by algebra, as they are given and while they are searched."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import random_params
from contrastbench.benchmarks.tables.searches import searched_ranges
from contrastbench.losses import LOSSES, LossSpec, get_loss
from contrastbench.losses.laws.assertions import check_close, value_and_gradient
from contrastbench.losses.laws.limits import pairing_of
from contrastbench.losses.laws.random_contrasts import (
    LAW_PAIRINGS,
    random_views,
    with_sample_numbers,
)
from contrastbench.losses.pairing import (
    BOTH_VIEWS,
    OTHER_VIEW,
    QUERY_KEY,
    SAME_CLASS,
    WHOLE_ROW,
    Pairing,
)
from contrastbench.losses.reduction import reduced
from contrastbench.losses.registry import describe
from counts import times


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
    monkeypatch.setattr("contrastbench.losses.reduction.is_registered", lambda name: True)
    assert reduced(loss, None).name in (f"{path}:A", f"{path}:B")
