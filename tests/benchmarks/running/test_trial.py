"""The first steps of a loss of two whole views, as `bench check-loss` tries them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli.check import trial_text
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import trial as trials
from contrastbench.benchmarks.running.trial import STEPS, Trial, trial
from contrastbench.losses.spec import LossSpec

LOSSES = """
import sys
import torch

class Pull(torch.nn.Module):
    def forward(self, z1, z2):
        return (z1 - z2).square().sum(dim=1).mean()

class Burst(torch.nn.Module):
    def forward(self, z1, z2):
        return 1e38 * (z1 - z2).square().sum(dim=1).mean() ** 2

class Tires(torch.nn.Module):
    calls = 0

    def forward(self, z1, z2):
        Tires.calls += z1.requires_grad and len(z1) > 64
        return (z1 - z2).square().mean() / (Tires.calls < 2 or sys.exit("tired"))
"""


@pytest.mark.parametrize("name", ["Pull", "Burst"])
def test_the_first_steps_say_whether_a_loss_trains(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(LOSSES)
    found = trial(Experiment("graph", "label-pairs", LossSpec(f"{file}:{name}"), {}))
    if name == "Pull":
        assert len(found.losses) == STEPS
        assert trial_text(found).startswith("20 steps: the loss went from ")
        point = replace(found, health={"rank": 1.2, "rank_of": 88.0, "uniformity": -0.01})
        assert trial_text(point).endswith("the embedding has rank 1.2 of 88: it collapsed")
    else:
        assert trial_text(found).endswith("try --recipe lr=0.001")
        assert trial_text(found).startswith("diverged, the loss is ")


PAGE = Path(__file__).parents[3] / "docs" / "loss-kinds.md"
ROWS = re.findall(r"^\| `([a-z_.]+)` \| (`\w+Loss`.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)


def test_the_page_names_losses_of_four_libraries() -> None:
    assert len(ROWS) == 4


@pytest.mark.filterwarnings("ignore")  # the libraries' own
@pytest.mark.parametrize(("module", "names"), ROWS, ids=[module for module, _ in ROWS])
def test_each_loss_of_the_page_trains_in_one_line(
    module: str, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(module, reason='pip install "[perf]"')
    monkeypatch.setattr(trials, "STEPS", 2)
    for name in re.findall(r"\w+", names):
        spec = LossSpec(f"{module}:{name}")
        found = trial(Experiment("tabular", "digits-table", spec, {}))
        assert (found.error, found.raised, len(found.losses)) == ("", None, 2), name
        assert found.losses[0] != found.losses[1], name


def test_a_domain_that_cannot_be_opened_is_said() -> None:
    assert trial_text(Trial("image", error="no torchvision")) == "not tried: no torchvision"


def test_a_loss_that_raises_in_its_trial_is_a_failed_check(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(LOSSES)
    monkeypatch.setattr("contrastbench.losses.laws.check_loss", lambda loss: [])
    code, out, err = bench("check-loss", f"{file}:Tires")
    fail, place, *_, last = out.splitlines()
    assert (code, err, fail.split()[:2]) == (1, "", ["FAIL", "tried"])
    assert "graph, step 2: SystemExit: tired" in fail
    assert "at mine.py:18: return" in place
    assert last.startswith("0 of 1 checks passed")
