"""A training that kills its own process.

A module of its own, so that a process can be started with it.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import checkpoints, training
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run
from contrastbench.losses.spec import LossSpec

EXPERIMENT = Experiment(
    "sentence",
    "graded",
    LossSpec("adnce", {"mu": 0.6}),
    {"epochs": 2, "limit": 48, "batch_size": 16, "eval_every": 2},
)


def kill(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in_step(last: int) -> None:
    """After the optimizer's step and before its checkpoint."""
    update = training.Run.update

    def update_and_kill(self: training.Run, value: Any) -> None:
        update(self, value)
        if self.history.step == last:
            kill()

    training.Run.update = update_and_kill


def kill_in_checkpoint(last: int) -> None:
    """When the checkpoint's bytes are written and it has not got its name."""
    write = checkpoints.write

    def write_and_kill(path: Path, tensors: Any, state: dict[str, Any]) -> None:
        if state["step"] == last:
            Path.replace = kill
        write(path, tensors, state)

    checkpoints.write = write_and_kill


if __name__ == "__main__":
    training.SECONDS_BETWEEN_CHECKPOINTS = -1  # one after every step
    {"step": kill_in_step, "checkpoint": kill_in_checkpoint}[sys.argv[1]](int(sys.argv[2]))
    run(EXPERIMENT, 1, Options(Path(sys.argv[3]), device="cpu"))
