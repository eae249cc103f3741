"""Trainings that are interrupted."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from contrastbench.benchmarks.running import training
from contrastbench.benchmarks.running.training import AnyDomain
from contrastbench.losses.base import Loss


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[AnyDomain, Loss, Path, int], None]:
    """Trains until SIGTERM in a step, which ends it with a checkpoint."""

    def train(domain: AnyDomain, loss: Loss, path: Path, step: int) -> None:
        update = training.Run.update

        def kill(run: training.Run, value: training.Tensor) -> None:
            update(run, value)
            if run.history.step == step:
                os.kill(os.getpid(), signal.SIGTERM)

        with monkeypatch.context() as patch:
            patch.setattr(training.Run, "update", kill)
            with pytest.raises(SystemExit) as end:
                training.train(domain, loss, path)
        assert end.value.code == 143

    return train
