"""The jobs of a sweep in Slurm's queue, and why they wait.

Brings no torch.
"""

import re
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

SECONDS_TO_ANSWER = 10  # of a busy controller
FORMAT = "%i|%T|%r"
MEANINGS = {  # of squeue's reasons, by pattern
    "Resources": "the nodes are busy; they start by themselves",
    "Priority": "jobs of a higher priority come first; they start by themselves",
    "PartitionTimeLimit": (
        "they ask for more time than sinfo shows and never start: scancel them, give a smaller "
        "--slurm time="
    ),
    "Partition.*": (
        "the partition does not allow what they ask for, or is down: compare with scontrol show "
        "partition"
    ),
    "QOSMax.*PerUser.*": "you run as much as your QOS allows; they start when yours end",
    "QOS.*|Assoc.*|Max.*PerAccount": (
        "your account or group uses as much as it may; they start when others end, or when the "
        "limit is renewed"
    ),
    "JobArrayTaskLimit": "the array may run no more jobs at a time; they start by themselves",
    "ReqNodeNotAvail.*|NodeDown|Reservation": (
        "nodes that they need are down or reserved: wait, or give another --slurm partition="
    ),
    "BadConstraints": "no node has what they ask for: scancel them and ask for less",
    "BeginTime": "they were queued again, or begin later as asked; they start by themselves",
    "DependencyNeverSatisfied": "the job that they wait for has failed, so they never start",
    "Dependency": "they wait for another job to end",
    "JobHeldUser": "they are held: scontrol release JOB",
    "JobHeldAdmin|.*requeued.held": "Slurm or its staff holds them: ask the staff",
    "Invalid.*": "your account or QOS is not valid: give --slurm account= or qos=",
    "None": "Slurm has not looked at them yet",
}


class Job(NamedTuple):
    """A line of squeue."""

    number: str
    state: str
    reason: str


def queue_lines(name: str) -> Iterator[str]:
    """Yield how many jobs of that name are in the queue, and a line for each reason to wait."""
    found = jobs(name)
    if not found:
        return
    states = dict.fromkeys(job.state for job in found)
    counts = (f"{sum(job.state == one for job in found)} {one.lower()}" for one in states)
    yield f"jobs in the queue: {', '.join(counts)}"
    waiting = [job for job in found if job.state == "PENDING"]
    for reason in dict.fromkeys(job.reason for job in waiting):
        numbers = ", ".join(job.number for job in waiting if job.reason == reason)
        yield f"  {numbers}: {reason}: {reason_help(reason)}"


def jobs(name: str) -> list[Job]:
    """Return my jobs of that name; none where Slurm is not here or does not answer."""
    command = ["squeue", "--me", "--noheader", f"--name={name}", f"--format={FORMAT}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split("|", 2) for line in done.stdout.splitlines()]
    return [Job(*row) for row in rows if len(row) == len(Job._fields) and not done.returncode]


def reason_help(reason: str) -> str:
    """Return what a reason of squeue means, and what to do."""
    for pattern, text in MEANINGS.items():
        if re.fullmatch(pattern, reason):
            return text
    return "see JOB REASON CODES in man squeue"
