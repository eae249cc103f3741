"""The battery on every registered loss."""

import os
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import wrong_losses
from cases import NAMES, SUM, random_params
from contrastbench.losses import LOSSES, Contrast, Loss, ViewLoss, get_loss
from contrastbench.losses.laws import LAWS, battery, check_loss, interface, invariances, precision
from contrastbench.losses.laws.battery import Law, run_law
from contrastbench.losses.laws.random_contrasts import with_sample_numbers
from counts import times

DRAWN = [*NAMES, SUM]  # by tests/tools/cases.py
SEEDS = st.integers(0, 2**31)


@pytest.mark.parametrize("name", [*LOSSES, SUM])
def test_whole_battery(name: str) -> None:
    assert [result for result in check_loss(name, seeds=[0]) if not result.passed] == []


@pytest.mark.parametrize("name", DRAWN)
@given(seed=SEEDS)
@settings(max_examples=times(100, least=10), deadline=None, derandomize=True, database=None)
def test_laws(name: str, seed: int) -> None:
    def build(**changed: object) -> Loss:
        return with_sample_numbers(get_loss(name, **{**random_params(name, seed), **changed}))

    interface.check_batch_size(build, seed)
    invariances.check_permutation(build, seed)
    invariances.check_rotation(build, seed)
    precision.check_float32(build, seed)


USERS_LAWS = {*wrong_losses.LAWS.values()} - {"state"}  # which also has a mistake that is rare
OTHER_LAWS = [law for law in LAWS if law.name not in USERS_LAWS]


MISTAKES = [(law, law.name.title().replace(" ", "")) for law in OTHER_LAWS]
MISTAKES += [(LAWS[0], "HolesTimesZero")]  # finite holes of a loss that learns would hide it


@pytest.mark.parametrize(("law", "mistake"), MISTAKES, ids=[mistake for _, mistake in MISTAKES])
def test_every_law_finds_its_mistake(law: Law, mistake: str) -> None:
    """Find the mistake of each law; those that users make are in `wrong_losses`."""
    broken = f"{Path(__file__).with_name('broken.py')}:{mistake}"
    assert not run_law(law, partial(get_loss, broken), range(7)).passed


def test_a_loss_that_does_not_repeat_fails_that_law() -> None:
    *_, result = check_loss(f"{Path(__file__).with_name('broken.py')}:Memory")
    assert not result.passed
    assert result.detail.startswith("two calls on the same batch differ")
    assert "changes while it is" in result.detail
    assert "self.training" in result.remedy


def test_a_loss_that_raises_fails_once() -> None:
    (result,) = check_loss(f"{Path(__file__).with_name('broken.py')}:Vector", seeds=[0])
    assert result.detail == "broken returns shape (12,): return one number, such as .mean()"
    assert "broken.py:" in result.place


def test_a_loss_may_draw_where_it_trains() -> None:
    results = check_loss(f"{Path(__file__).with_name('broken.py')}:Noise", seeds=[0])
    assert [result.name for result in results if not result.passed] == []


def test_an_assertion_in_a_loss_is_not_taken_for_a_law() -> None:
    class Asserts(Loss):
        def forward(self, contrast: Contrast) -> Tensor:
            assert not contrast, "mine"
            return contrast.anchor.sum()

    found = run_law(LAWS[0], Asserts, [0])
    assert found.detail == "AssertionError: mine"
    assert "test_battery.py:" in found.place
    assert found.place.endswith('assert not contrast, "mine"')


@pytest.mark.parametrize(("counts", "word"), [(False, ""), (True, "remark")])
def test_state_of_whole_views_is_named_and_what_torch_empty_holds_is_not(
    counts: bool, word: str
) -> None:
    garbage = iter(range(9))

    class Bank(ViewLoss):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("pointer", torch.tensor(next(garbage)))

        def of_views(self, z1: Tensor, z2: Tensor) -> Tensor:
            self.pointer += counts
            return (z1 - z2).square().mean()

    (law,) = [law for law in LAWS if law.name == "buffers"]
    found = run_law(law, Bank, [0])
    assert (found.passed, found.word) == (True, word)
    assert ("pointer" in found.detail) == counts


DECLINES = """from contrastbench.losses.library.infonce import InfoNCE


class Mine(InfoNCE):
    declined_laws = {}

    def combine(self, terms):
        return terms.sum()
"""


def test_a_declined_law_is_not_run_and_its_reason_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [law for law in LAWS if law.name in ("runs", "repeated anchors", "batch size")]
    monkeypatch.setattr(battery, "LAWS", few)
    (tmp_path / "mine.py").write_text(
        DECLINES.replace("{}", '{"repeated anchors": "a sum, as printed"}')
    )
    results = check_loss(f"infonce + 0.5*{tmp_path / 'mine.py'}:Mine", seeds=[0])
    assert [result for result in results if not result.passed] == []
    (declined,) = [result for result in results if result.word == "declined"]
    assert (declined.name, declined.detail) == ("repeated anchors", "a sum, as printed")


def test_an_exit_within_a_loss_is_a_failed_check_and_sigterm_is_not() -> None:
    class Exits(Loss):
        def forward(self, contrast: Contrast) -> Tensor:
            raise SystemExit(code)

    code = 0
    assert run_law(LAWS[0], Exits, [0]).detail == "SystemExit: 0"
    code = 143
    with pytest.raises(SystemExit):
        run_law(LAWS[0], Exits, [0])


def test_a_loss_that_changes_the_folder_fails_and_the_folder_is_as_before() -> None:
    class Moves(Loss):
        def forward(self, contrast: Contrast) -> Tensor:
            os.chdir("/")
            return contrast.anchor.sum()

    before = Path.cwd()
    assert "the loss calls os.chdir" in run_law(LAWS[0], Moves, [0]).detail
    assert Path.cwd() == before
