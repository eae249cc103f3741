"""A loss whose process ends in a step, where ENDING says so: RANK STEP HOW.

Steps are counted over all trainings of the process. A file of its own, as a user's loss has. Where
ENDING is said, every step writes a checkpoint.
"""

import os
import signal

from torch import Tensor

from contrastbench.benchmarks.running import training
from contrastbench.losses import Contrast
from contrastbench.losses.library.infonce import InfoNCE

if "ENDING" in os.environ:
    training.SECONDS_BETWEEN_CHECKPOINTS = -1


class Ending(InfoNCE):
    """InfoNCE that ends the process at the rank and step in ENDING."""

    def forward(self, contrast: Contrast) -> Tensor:
        if "ENDING" in os.environ:
            rank, last, how = os.environ["ENDING"].split()
            if (os.environ.get("RANK", "0"), step()) == (rank, last):
                end(how)
        return super().forward(contrast)


def step() -> str:
    """Count a step; the module of a user's loss is another one in each training."""
    os.environ["STEP"] = str(int(os.environ.get("STEP", "0")) + 1)
    return os.environ["STEP"]


def end(how: str) -> None:
    """By an error, a signal, or one to who started the processes."""
    if how == "error":
        raise RuntimeError("out of luck")
    pid = os.getppid() if how == "parent" else os.getpid()
    os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGTERM)
    interruption = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    while how == "parent" and not interruption.signal:  # it is passed on within this step
        os.sched_yield()
