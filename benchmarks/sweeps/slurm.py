"""Run a sweep as Slurm jobs by submitit: an array of one command, whose jobs share cells by claims.

Brings no torch.
"""

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import submitit

from contrastbench.errors import UserError

REQUEUES = 100  # of a job that reached its time limit; each has left a checkpoint
RESTARTS = 3  # of the ranks on several nodes
LOGS = "slurm"  # the folder of jobs and of what they print, in that of results
BENCH = [sys.executable, "-P", "-m", "contrastbench"]


class SlurmJob:
    """A process that runs `bench`, and what submitit does with it at the time limit."""

    def __init__(self, words: Sequence[str], devices: int) -> None:
        self.words, self.devices = words, devices

    def __call__(self) -> None:
        words = command(self.words, self.devices)
        self.process = subprocess.Popen(words, preexec_fn=ignore_signal_of_submitit)
        if code := self.process.wait():
            sys.exit(code)

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """Let the command write its checkpoints and end, and return the job to be queued again."""
        self.process.terminate()
        # not `wait`: the signal may have come within the other one, which holds a lock
        if not os.waitpid(self.process.pid, 0)[1]:
            sys.exit()  # it was finished in the same moment
        return submitit.helpers.DelayedSubmission(SlurmJob(self.words, self.devices))


def ignore_signal_of_submitit() -> None:
    """Let the process and its workers ignore what Slurm sends to all processes of a job."""
    signal.signal(getattr(signal, f"SIG{submitit.JobEnvironment.USR_SIG}"), signal.SIG_IGN)


def command(words: Sequence[str], devices: int) -> list[str]:
    """Return the command of a job; over several nodes torchrun starts its ranks."""
    here = submitit.JobEnvironment()
    if here.num_nodes == 1:
        return [*BENCH, *words]
    number = here.raw_job_id
    ranks = [f"--nnodes={here.num_nodes}", f"--nproc-per-node={devices}"]
    port = 20000 + int(number) % 20000
    meeting = [f"--rdzv-endpoint={here.hostnames[0]}:{port}", f"--rdzv-id={number}"]
    torchrun = ["-m", "torch.distributed.run", *ranks, "--rdzv-backend=c10d", *meeting]
    words = without_option(words, "--devices")
    start = [sys.executable, *torchrun, f"--max-restarts={RESTARTS}"]
    return [*start, "-m", "contrastbench", *words]


class Shown(submitit.SlurmExecutor):
    """An executor that needs no Slurm, because its script is shown and not submitted."""

    @classmethod
    def affinity(cls) -> int:
        """Return that it can be used here."""
        return 1


def gpus_of(settings: Mapping[str, Any]) -> int:
    """Return how many GPUs a node of a job has.

    >>> gpus_of({"gpus_per_node": "a100:2"}), gpus_of({"gres": "gpu:a100"}), gpus_of({"mem": "4G"})
    (2, 1, 0)
    """
    asked = (f"{settings.get(name, 0)}" for name in ("gpus_per_node", "gpus_per_task", "gres"))
    counts = (re.search(r"(?:^|:)(\d+)$", text) for text in asked)
    return max(int(count[1]) if count else 1 for count in counts)


def submit(
    words: Sequence[str], folder: Path, devices: int, settings: Mapping[str, Any]
) -> tuple[str, str]:
    """Submit jobs that run `bench` with these words.

    Args:
        devices: of each training, on each node.
        settings: `jobs`, their number, `print`, which submits none, and parameters of submitit's
            executor.

    Returns:
        The number of the jobs, "" where they are not submitted, and the script of those.
    """
    given = {"ntasks_per_node": 1, "stderr_to_stdout": True, **settings}
    jobs, shown = given.pop("jobs", 1), given.pop("print", False)
    if not isinstance(shown, bool):
        raise UserError(f"--slurm print={shown}: give true, which shows the script, or false")
    for name, value in {"jobs": jobs, "nodes": 1, "time": "", **given}.items():
        if name in ("jobs", "nodes", "time") and not (isinstance(value, int) and value > 0):
            unit = " of minutes, the limit of a job" * (name == "time")
            raise UserError(f"--slurm {name}={value}: give a whole number above zero{unit}")
        if not f"{value}{folder}".isprintable():  # a new line would be one of the script
            raise UserError(f"--slurm {name}={value!r} has a character that sbatch cannot read")
    # srun does not ask sbatch for the number of cores
    given.setdefault("srun_args", [f"--cpus-per-task={given['cpus_per_task']}"])
    try:
        with redirect_stderr(io.StringIO()):  # submitit also prints what it raises
            kind = Shown if shown else submitit.SlurmExecutor
            executor = kind(folder.absolute(), max_num_timeout=REQUEUES)
            executor.update_parameters(**given)
            if shown:
                executor.parameters["map_count"] = jobs
                return "", executor._make_submission_file_text(executor._submitit_command_str, "")
            jobs_of_array = executor.submit_array([SlurmJob(words, devices)] * jobs)
            return jobs_of_array[0].job_id.split("_")[0], ""
    except (RuntimeError, ValueError) as error:
        raise UserError(f"--slurm: {' '.join(str(error).split())}") from None


def without_option(words: Sequence[str], name: str) -> list[str]:
    """The words of a command line without an option and its values.

    >>> without_option(["sweep", "a", "--slurm", "jobs=2", "--slurm=time=60", "--tiny"], "--slurm")
    ['sweep', 'a', '--tiny']
    """
    kept, values = list[str](), iter(words)
    for word in values:
        if word == name:
            next(values, None)
        elif not word.startswith(f"{name}="):
            kept.append(word)
    return kept
