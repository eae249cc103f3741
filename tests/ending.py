"""A loss whose process ends in a step, where ENDING says so: RANK STEP HOW.

A file of its own, as a user's loss has. Where ENDING is said, every step writes a checkpoint.
"""

import os
import signal

from torch import Tensor

from contrastbench.benchmarks.running import training
from contrastbench.losses import Contrast
from contrastbench.losses.infonce import InfoNCE

if "ENDING" in os.environ:
    training.SECONDS_BETWEEN_CHECKPOINTS = -1


class Ending(InfoNCE):
    """InfoNCE."""

    steps = 0

    def forward(self, contrast: Contrast) -> Tensor:
        self.steps += 1
        rank, step, how = os.environ.get("ENDING", "0 0 -").split()
        if (os.environ.get("RANK"), str(self.steps)) == (rank, step):
            end(how)
        return super().forward(contrast)


def end(how: str) -> None:
    """By an error, a signal, or one to who started the processes."""
    if how == "error":
        raise RuntimeError("out of luck")
    pid = os.getppid() if how == "parent" else os.getpid()
    os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGTERM)
