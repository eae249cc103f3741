"""Every parameter of every loss rejects what is out of its range, with an error that names it."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contrastbench.benchmarks.tables.searches import value_at
from contrastbench.losses import LOSSES, LossSpec, ScoreLoss, UserError, get_loss
from contrastbench.losses.ranges import (
    TEMPERATURE,
    Choice,
    Given,
    Number,
    Whole,
    declare,
)
from contrastbench.losses.registry import describe
from counts import times

NO_NUMBER = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, True, False, None, 1j]),
    st.text(),
    st.lists(st.floats(0, 1)),
)
DECLARED = [(name, key, r) for name in LOSSES for key, r in describe(name).ranges.items()]
CHOICES = [(name, key) for name, key, r in DECLARED if isinstance(r, Choice)]
CASES = [  # of every number: the loss, what its range depends on, the name, the range
    (name, {r.other: case} if isinstance(r, Given) else {}, key, numbers)
    for name, key, r in DECLARED
    if not isinstance(r, Choice)
    for case, numbers in (r.ranges if isinstance(r, Given) else {"": r}).items()
]


def outside(r: Number) -> st.SearchStrategy[Any]:
    """Numbers and others that are not in the range, its open ends among them."""
    finite = {"allow_nan": False, "allow_infinity": False}
    below = st.floats(max_value=r.low, exclude_max=r.closed in (True, "low"), **finite)
    above = st.floats(min_value=r.high, exclude_min=r.closed in (True, "high"), **finite)
    excluded = st.just(r.excluded[0]) if r.excluded else st.nothing()
    return st.one_of(
        NO_NUMBER,
        excluded,
        below if math.isfinite(r.low) else st.nothing(),
        above if math.isfinite(r.high) else st.nothing(),
    )


@pytest.mark.parametrize(("name", "given_", "key", "numbers"), CASES)
def test_what_is_tuned_is_allowed(
    name: str, given_: dict[str, str], key: str, numbers: Number
) -> None:
    """Both ends and the middle of the interval, on its scale."""
    assert numbers.tune is not None
    low, high = numbers.tune
    middle = math.sqrt(low * high) if numbers.log else (low + high) / 2
    for value in (low, middle, high):
        assert get_loss(name, **given_, **{key: value}).params[key] == value


@pytest.mark.parametrize(("name", "given_", "key", "numbers"), CASES)
@given(data=st.data())
@settings(max_examples=times(50), deadline=None, derandomize=True, database=None)
def test_number(
    name: str, given_: dict[str, str], key: str, numbers: Number, data: st.DataObject
) -> None:
    bad = data.draw(outside(numbers))
    with pytest.raises(UserError, match=f"^{key} must "):
        get_loss(name, **given_, **{key: bad})
    with pytest.raises(UserError, match=f"^{key} must "):
        LossSpec(name, {**given_, key: bad}).check()


@pytest.mark.parametrize(("name", "key"), CHOICES)
@given(bad=st.text() | NO_NUMBER | st.floats())
@settings(max_examples=times(50), deadline=None, derandomize=True, database=None)
def test_choice(name: str, key: str, bad: object) -> None:
    assume(
        bad not in describe(name).ranges[key].choices
    )  # texts are drawn from the code's own words
    with pytest.raises(UserError, match=f"^{key} must be one of "):
        get_loss(name, **{key: bad})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Number(closed="lower"), "closed='lower': give True, False, 'low' or 'high'"),
        (lambda: Number(low=1, high=0), "low=1 is not below high=0"),
        (lambda: Number(0, 1, tune=(0.5, 3)), r"tune=\(0.5, 3\) is no interval of numbers > 0 and"),
        (lambda: Number(tune=(0.5, 0.1)), r"tune=\(0.5, 0.1\) is no interval of numbers"),
        (
            lambda: Number(0, tune=(0.1, math.inf)),
            r"tune=\(0.1, inf\) is no interval of numbers > 0",
        ),
        (lambda: Number(0, closed="low", tune=(0, 1), log=True), "searched by factors"),
    ],
)
def test_a_range_that_is_none_is_refused(made: Callable[[], Number], message: str) -> None:
    with pytest.raises(UserError, match=message):
        made()


def test_a_name_without_a_range_is_named() -> None:
    class Mistyped(ScoreLoss):
        ranges = declare(tau=TEMPERATURE)

        def __init__(self, temperature: float = 0.5) -> None:
            super().__init__()
            self.temperature = self.checked("temperature", temperature)

    with pytest.raises(UserError, match=r"test_ranges.py:\d+: .* finds no range: add temperature="):
        Mistyped()


def test_annotated_attributes_are_the_arguments_of_a_class_without_a_constructor() -> None:
    class Kept(ScoreLoss):
        ranges = declare(temperature=TEMPERATURE, margin=Number(low=0))
        temperature: float = 0.5
        margin: float = 0.1
        table: str = "no argument, as no range names it"

    class Written(Kept):
        def __init__(self, margin: float = 0.3) -> None:
            super().__init__(margin=margin)
            self.learned = torch.nn.Parameter(torch.zeros(()))

    @dataclass(eq=False)
    class Data(ScoreLoss):
        ranges = declare(margin=Number(low=0))
        margin: float = 0.1

        def __post_init__(self) -> None:
            super().__init__()

    assert str(inspect.signature(Kept)) == "(temperature=0.5, margin=0.1)"
    assert Data(0.2).params == Data(margin=0.2).params == {"margin": 0.2}
    assert (Kept(0.2).params, Written().params) == (
        {"temperature": 0.2, "margin": 0.1},
        {"margin": 0.3},
    )
    assert Written().temperature == 0.5
    for wrong, error in (({"margin": 0}, UserError), ({"table": "x"}, TypeError)):
        with pytest.raises(error):
            Kept(**wrong)


def test_whole_numbers_are_searched_and_kept_as_such() -> None:
    size = Whole(low=1, tune=(1, 64), log=True)
    found = [value_at(share, size, {}, "size") for share in (0, 0.5, 0.9, 1)]
    assert (found, {*map(type, found)}) == ([1, 8, 42, 64], {int})
    assert type(size.check("size", 8.0, {})) is int
    for bad in (0, 6.5, True, "6", math.inf):
        with pytest.raises(UserError, match="size must be a whole number >= 1, got"):
            size.check("size", bad, {})
