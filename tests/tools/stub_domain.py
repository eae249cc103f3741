"""A domain of two steps that take a millisecond, for tests of what surrounds a training."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running import devices, opening, runner, training
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.base import Domain, Evaluation
from contrastbench.losses import Contrast, LossSpec, other_view


class Stub(Domain[Any, nn.Linear, torch.Tensor]):
    """A linear model, whose initialisation gives way to other threads."""

    def data_hash(self, trained: bool) -> str:
        return "0" * 64

    def model(self) -> nn.Linear:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            for _ in range(4):
                time.sleep(0)  # to another thread
            return nn.Linear(4, 4)

    def steps(self) -> int:
        return 2

    def batches(self, epoch: int) -> list[torch.Tensor]:
        return [torch.eye(4), torch.eye(4).flip(0)]

    def contrasts(self, model: nn.Linear, batch: torch.Tensor) -> list[Contrast]:
        return [other_view(model(batch), batch)]

    def evaluate(self, model: nn.Linear) -> Evaluation:
        percent = 50 + 10 * model.weight.double().sum().tanh().item()
        return Evaluation({"accuracy": percent}, "accuracy")


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the runner open it, and look up packages and the commit once."""
    torch.set_num_threads(1)  # as its runs do, so that all of them have one environment
    known = devices.environment(torch.device("cpu"))
    monkeypatch.setattr(opening, "domain_class", lambda _: Stub)
    monkeypatch.setattr(runner, "environment", lambda *_: known)
    monkeypatch.setattr(training, "circumstances", lambda *_: {})


def cell(results: Path, loss: str = "infonce", seed: int = 0) -> Record:
    """Return the record of a training of one epoch."""
    work = Experiment("graph", "motifs", LossSpec(loss), {"epochs": 1})
    return runner.run_cell(work, seed, Options(results, device="cpu"))[0]
