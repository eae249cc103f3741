"""Run a sweep as Slurm jobs: an array of one command, whose jobs share cells by claims.

Brings no torch.
"""

import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from contrastbench.errors import UserError

SECONDS_TO_CHECKPOINT = 90  # before the time limit
REQUEUES = 100  # of a job; each has left a checkpoint
RESTARTS = 3  # of the ranks on several nodes
LOGS = "slurm"  # the folder of what jobs print, in that of results
BENCH = str(Path(sysconfig.get_path("scripts"), "bench"))

QUEUE_AGAIN = f"""\
if [ "$code" = 143 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {REQUEUES} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
"""

# SIGTERM reaches the steps before the time limit, and by scancel --signal=TERM: the sweep ends with
# checkpoints and this code. A job that is cancelled loses this shell too. The number of cores is
# said twice because srun does not ask sbatch for it. One job of an array has the array's number.
ON_A_NODE = """\
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" {command}
code=$?
"""

# Here SIGTERM reaches this shell alone, which passes it on: what torchrun ends with tells nothing.
ON_NODES = """\
asked=no
trap 'asked=yes; kill -TERM "$step"' TERM
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" {torchrun} --nnodes="$SLURM_JOB_NUM_NODES" \\
    --rdzv-backend=c10d --rdzv-endpoint="$head:$((20000 + SLURM_JOB_ID % 20000))" \\
    --rdzv-id="$SLURM_JOB_ID" -m contrastbench {command} &
step=$!
wait "$step"
code=$?
if [ "$asked" = yes ]; then
    wait "$step" && code=0 || code=143
fi
"""


def body(words: Sequence[str], nodes: str, devices: int) -> str:
    """Return the lines that run `bench` with these words, on one node or over several.

    Over several nodes torchrun starts the ranks, which share one cell at a time.

    Raises:
        UserError: the number of nodes is none, or each is to run several cells.
    """
    if nodes == "1":
        return ON_A_NODE.format(command=shlex.join([BENCH, *words]))
    if not (nodes.isdecimal() and int(nodes) > 0):
        raise UserError(f"--slurm nodes={nodes}: give a whole number above zero")
    if any(word.startswith("--jobs") for word in words):
        raise UserError("--slurm nodes: the nodes share one cell at a time: leave --jobs out")
    ranks = [f"--nproc-per-node={devices}", f"--max-restarts={RESTARTS}"]
    torchrun = shlex.join([sys.executable, "-m", "torch.distributed.run", *ranks])
    return ON_NODES.format(
        torchrun=torchrun, command=shlex.join(without_option(words, "--devices"))
    )


def script(
    words: Sequence[str],
    name: str,
    logs: Path,
    workers: int,
    settings: Mapping[str, str],
    devices: int = 1,
) -> str:
    """Return the batch script for sbatch.

    Args:
        words: what each job runs, behind `bench`.
        name: of the jobs.
        logs: a folder for what they print, which is made.
        workers: cells that each runs at a time.
        settings: `jobs`, their number; and sbatch's options, such as partition, time, mem. With
            `nodes` above one, all nodes of a job share each cell.
        devices: of each cell, on each node; each has a core unless a setting says otherwise.

    Raises:
        UserError: the number of jobs is none, a setting is no option of sbatch or has a line
            break, or the folder cannot be made.
    """
    jobs, nodes = settings.get("jobs", "1"), settings.get("nodes", "1")
    lines = body(words, nodes, devices)
    try:
        logs.mkdir(parents=True, exist_ok=True)  # sbatch does not
    except OSError as error:
        raise UserError(
            f"cannot write to {logs} ({error.strerror}): name another folder with --results"
        ) from None
    if not (jobs.isdecimal() and int(jobs) > 0):
        raise UserError(f"--slurm jobs={jobs}: give a whole number above zero")
    options = {
        "job-name": name,
        "array": f"0-{int(jobs) - 1}",
        "cpus-per-task": str(workers * devices),
        "output": f"{logs.absolute()}/%A_%a.log",
        "open-mode": "append",
        "signal": f"{'' if nodes == '1' else 'B:'}TERM@{SECONDS_TO_CHECKPOINT}",
        "requeue": "",
        **({} if nodes == "1" else {"ntasks-per-node": "1"}),
        **{option(key): value for key, value in settings.items() if key != "jobs"},
    }
    for key, value in options.items():
        if not value.isprintable():  # a new line would be one of the script
            raise UserError(f"--{key}={value} has a character that sbatch cannot read: rename it")
    directives = [
        f"#SBATCH --{key}" + f"={shlex.quote(v)}" * (v != "") for key, v in options.items()
    ]
    return "\n".join(["#!/bin/bash", *directives, "", lines + QUEUE_AGAIN])


def option(key: str) -> str:
    """Sbatch's name of an option.

    >>> option("gpus_per_node")
    'gpus-per-node'
    """
    if not re.fullmatch("[a-z][a-z_-]+", key):
        raise UserError(f"--slurm {key}: give jobs, print or an option of sbatch, such as time=600")
    return key.replace("_", "-")


def job_name(table: str) -> str:
    """Return the name of the jobs of a sweep, by which the queue is asked for them."""
    return f"sweep-{table}"


def submit_script(text: str) -> str:
    """Hand the script to sbatch; the number of the job.

    Raises:
        UserError: there is no sbatch, or it refuses; in one line.
    """
    try:
        done = subprocess.run(["sbatch", "--parsable"], input=text, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError(
            "--slurm: there is no sbatch here: run this where jobs are submitted, or give "
            "--slurm print=true and take the script there"
        ) from None
    if done.returncode:
        raise UserError(f"--slurm: {' '.join(done.stderr.split())}")
    return done.stdout.split(";")[0].strip()


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
