"""Every parameter of every loss rejects what is out of its range, with an error that names it."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrastbench.losses import LOSSES, UserError, get_loss
from contrastbench.losses.registry import describe

NEGATIVE = st.floats(max_value=0, exclude_max=True)
ABOVE_ONE = st.floats(min_value=1, exclude_min=True)
ZERO, ONE = st.just(0), st.just(1)
NO_NUMBER = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, True, False, None, 1j]),
    st.text(),
    st.lists(st.floats(0, 1)),
)
OUTSIDE: dict[str, st.SearchStrategy[Any]] = {  # what its own range excludes, whatever the loss
    "temperature": NEGATIVE | ZERO,
    "tau_plus": NEGATIVE | ONE | ABOVE_ONE,
    "beta": NEGATIVE,
    "q": NEGATIVE | ZERO | ABOVE_ONE,
    "lam": NEGATIVE | ZERO | ABOVE_ONE,
    "p": NEGATIVE | ZERO,
    "mu": st.nothing(),
    "sigma": NEGATIVE | ZERO,
    "k": NEGATIVE | ZERO | ONE | st.floats(min_value=2, exclude_min=True),
    "d_pos": NEGATIVE | ZERO,
    "d_neg": NEGATIVE | ZERO,
    "alpha": NEGATIVE | ABOVE_ONE,
    "gamma": NEGATIVE | ZERO | ONE,
}
NUMBERS = [
    (name, key)
    for name in LOSSES
    for key, value in describe(name).params.items()
    if isinstance(value, float)
]
CHOICES = [
    (name, key)
    for name in LOSSES
    for key, value in describe(name).params.items()
    if isinstance(value, str)
]


@pytest.mark.parametrize(("name", "key"), NUMBERS)
@given(data=st.data())
@settings(max_examples=50, deadline=None, derandomize=True, database=None)
def test_number(name: str, key: str, data: st.DataObject) -> None:
    bad = data.draw(NO_NUMBER | OUTSIDE[key])
    with pytest.raises(UserError, match=f"^{key} must "):
        get_loss(name, **{key: bad})


@pytest.mark.parametrize(("name", "key"), CHOICES)
@given(bad=st.text() | NO_NUMBER | st.floats())
@settings(max_examples=50, deadline=None, derandomize=True, database=None)
def test_choice(name: str, key: str, bad: object) -> None:
    with pytest.raises(UserError, match=f"^{key} must be one of "):
        get_loss(name, **{key: bad})


@pytest.mark.parametrize("weight", ["gamma", "rayleigh", "chi2"])
def test_table_11_needs_a_positive_mu(weight: str) -> None:
    with pytest.raises(UserError, match=r"^mu must be a finite number > 0"):
        get_loss("adnce", weight=weight, mu=-0.1)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("debiased", {"tau_plus": 0}),
        ("hcl", {"beta": 0}),
        ("rince", {"q": 1, "lam": 1}),
        ("phi_dro", {"phi": "cressie_read", "k": 2}),
        ("rmlcpc", {"alpha": 0}),
        ("nwj", {"alpha": 1}),
    ],
)
def test_closed_ends_are_allowed(name: str, params: dict[str, Any]) -> None:
    assert get_loss(name, **params).params.items() >= params.items()
