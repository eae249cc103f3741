"""InfoNCE that counts its calls, and where it is told to, waits in one for what becomes of its job.

A test gives it a folder with two pipes in the environment. In the third call ever it says through
`begun` who it is, and waits until its process gets a signal; the first call of the next process
says who that is through `again`.
"""

import os
import signal
from pathlib import Path
from typing import ClassVar

from contrastbench.losses import ScoreLoss, Scores

FOLDER = Path(os.environ.get("WAITING", "not there"))


def me() -> str:
    """Slurm's name of this job alone; a job's number may be its whole array's."""
    return "{SLURM_ARRAY_JOB_ID}_{SLURM_ARRAY_TASK_ID}".format_map(os.environ)


class Waiting(ScoreLoss):
    calls: ClassVar[int] = 0  # of this process

    def terms(self, scores: Scores):
        if FOLDER.exists():
            self.note()
        return -scores.mean_pos(scores.log_share(scores.pos / 0.5, scores.neg / 0.5))

    def note(self) -> None:
        Waiting.calls += 1
        with (FOLDER / "calls").open("a") as file:
            file.write("x")
        ever = (FOLDER / "calls").stat().st_size
        if ever == 3 and (FOLDER / "begun").exists():
            read, write = os.pipe()
            os.set_blocking(write, False)
            signal.set_wakeup_fd(write)
            (FOLDER / "begun").write_text(me())
            os.read(read, 1)
        elif ever > 3 and Waiting.calls == 1 and (FOLDER / "again").exists():
            (FOLDER / "again").write_text(me())
