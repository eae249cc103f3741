"""The battery on every registered loss."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cases import NAMES, SUM, random_params
from contrastbench.losses import LOSSES, Contrast, Loss, get_loss
from contrastbench.losses.laws import (
    CHECKS,
    check_loss,
    derivatives,
    interface,
    invariances,
    precision,
)
from contrastbench.losses.laws.assertions import Check
from contrastbench.losses.laws.battery import REMEDIES, run
from counts import times

DRAWN = [*NAMES, SUM]  # by tests/cases.py
SEEDS = st.integers(0, 2**31)


@pytest.mark.parametrize("name", [*LOSSES, SUM])
def test_whole_battery(name: str) -> None:
    assert [result for result in check_loss(name, seeds=[0]) if not result.passed] == []


@pytest.mark.parametrize("name", DRAWN)
@given(seed=SEEDS)
@settings(max_examples=times(200, least=25), deadline=None, derandomize=True, database=None)
def test_laws(name: str, seed: int) -> None:
    def build(**changed: object) -> Loss:
        return get_loss(name, **{**random_params(name, seed), **changed})

    interface.check_batch_size(build, seed)
    invariances.check_permutation(build, seed)
    invariances.check_rotation(build, seed)
    precision.check_float32(build, seed)


@pytest.mark.parametrize("name", DRAWN)
def test_gradients(name: str) -> None:
    for seed in range(times(50)):
        loss = get_loss(name, **random_params(name, seed)).double()
        derivatives.check_gradient(lambda loss=loss: loss, seed)
        if seed % 5 == 0:
            derivatives.check_second_gradient(lambda loss=loss: loss, seed)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_finds_its_mistake(check: Check) -> None:
    title = check.__name__.removeprefix("check_").title().replace("_", "")
    broken = f"{Path(__file__).with_name('broken.py')}:{title}"
    assert not run(check, partial(get_loss, broken), range(7)).passed
    assert run(check, partial(get_loss, "infonce"), range(7)).passed


@pytest.mark.parametrize(
    ("name", "why"), [("Randomness", "draws random numbers"), ("Memory", "changes while it is")]
)
def test_a_loss_that_does_not_repeat_fails_one_check(name: str, why: str) -> None:
    (result,) = check_loss(f"{Path(__file__).with_name('broken.py')}:{name}")
    assert not result.passed
    assert result.detail.startswith(f"AssertionError: the loss {why}")
    assert result.detail.endswith("two calls on the same batch differ")
    assert "self.training" in result.remedy


def test_a_loss_that_raises_is_named_by_other_checks() -> None:
    results = check_loss(f"{Path(__file__).with_name('broken.py')}:Scalar", seeds=[0])
    assert results[0].passed
    assert (
        results[1].detail
        == "UserError: broken returns shape (12,): return one number, such as .mean()"
    )
    assert len(results) == len(CHECKS)


def test_a_loss_may_draw_where_it_trains() -> None:
    results = check_loss(f"{Path(__file__).with_name('broken.py')}:Noise", seeds=[0])
    assert [result.name for result in results if not result.passed] == []


def test_every_check_has_a_remedy() -> None:
    titles = {check.__name__.removeprefix("check_").replace("_", " ") for check in CHECKS}
    assert set(REMEDIES) == titles


def test_an_exit_within_a_loss_is_a_failed_check_and_sigterm_is_not() -> None:
    class Exits(Loss):
        def forward(self, contrast: Contrast) -> Tensor:
            raise SystemExit(code)

    code = 0
    assert run(CHECKS[0], Exits, [0]).detail == "SystemExit: 0"
    code = 143
    with pytest.raises(SystemExit):
        run(CHECKS[0], Exits, [0])
