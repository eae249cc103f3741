"""The first steps of a loss of two whole views, as `bench check-loss` tries them."""

from dataclasses import replace
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli.check import trial_text
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.trial import STEPS, Trial, trial
from contrastbench.losses.spec import LossSpec

LOSSES = """
import torch

class Pull(torch.nn.Module):
    def forward(self, z1, z2):
        return (z1 - z2).square().sum(dim=1).mean()

class Burst(torch.nn.Module):
    def forward(self, z1, z2):
        return 1e38 * (z1 - z2).square().sum(dim=1).mean() ** 2
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


def test_a_domain_that_cannot_be_opened_is_said() -> None:
    assert trial_text(Trial("image", error="no torchvision")) == "not tried: no torchvision"
