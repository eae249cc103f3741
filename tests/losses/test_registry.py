"""Losses by name: the registry, near misses, a user's own file, descriptions without torch."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from contrastbench.losses import LOSSES, UserError, get_loss
from contrastbench.losses.registry import describe, loss_class

OWN = """
from contrastbench.losses import Scores, ScoreLoss

class Mine(ScoreLoss):
    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        self.temperature = temperature

    def terms(self, scores: Scores):
        return (scores.log_denominator(scores.pos, scores.neg) - scores.pos).mean(dim=1)
"""


@pytest.mark.parametrize("name", LOSSES)
def test_descriptions_agree_with_the_classes(name: str) -> None:
    parameters = inspect.signature(loss_class(name)).parameters
    assert describe(name).params == {key: p.default for key, p in parameters.items()}
    assert describe(name).params == get_loss(name).params
    assert describe(name).summary == (loss_class(name).__doc__ or "").split("\n")[0]


@pytest.mark.parametrize("call", [lambda: get_loss("adnc"), lambda: describe("adnc")])
def test_an_unknown_loss_answers_with_the_closest(call) -> None:
    with pytest.raises(UserError, match="unknown loss 'adnc': did you mean 'adnce'"):
        call()


def test_an_unknown_parameter_answers_with_the_closest() -> None:
    with pytest.raises(UserError, match="unknown parameter of adnce 'sigm': did you mean 'sigma'"):
        get_loss("adnce", sigm=1)


def test_a_users_own_loss_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    assert get_loss(f"{file}:Mine", temperature=2).params == {"temperature": 2}
    with pytest.raises(UserError, match=r"unknown class in .*'Mne': did you mean 'Mine'"):
        get_loss(f"{file}:Mne")
    with pytest.raises(UserError, match="no file"):
        get_loss(f"{tmp_path}/other.py:Mine")


def test_listing_needs_no_torch() -> None:
    code = "import sys; from contrastbench.losses.registry import *; describe('adnce'); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
