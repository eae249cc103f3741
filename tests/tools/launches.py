"""Trainings on two devices to be killed: who launches them, and both ranks, are forked.

A module of its own, so that processes can be started with it, see forked.py.
"""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
import torch

import stub_domain
from contrastbench.benchmarks.cli.main import main as bench
from contrastbench.benchmarks.running import launch, ranks, training


class Rank:
    """A forked process, as `launch` sees one that it has started."""

    inputs: ClassVar[list[int]] = []  # the launcher's ends of the ranks' standard inputs

    def __init__(self, number: int, count: int, folder: Path) -> None:
        self.returncode: int | None = None
        (folder / f"{number}.log").touch()
        end, own = os.pipe()
        self.inputs.append(own)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.run(number, count, folder, end)
            finally:
                os._exit(1)
        os.close(end)

    def run(self, number: int, count: int, folder: Path, end: int) -> None:
        """Be the rank, with the handlers of signals that a new process has."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for other in self.inputs:
            os.close(other)
        os.dup2(end, 0)
        os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), str(number))
        os.environ |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(count))
        os.environ[launch.MEETING] = f"file://{folder}/meeting"
        main()

    def __enter__(self) -> "Rank":
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(rank: int, devices: int, folder: Path, job: object) -> Rank:
    return Rank(rank, devices, folder)


def main() -> None:
    """Run `bench`, until the process ends."""
    with Path(os.environ["PIDS"]).open("a") as file:
        file.write(f"{os.getpid()} ")
    try:
        bench()
    except SystemExit as stop:
        os._exit(stop.code if isinstance(stop.code, int) else 1)
    os._exit(0)


def train(results: str, alive: str, late: bool = False) -> None:
    """Train on two devices; each process that lives holds the pipe open for writing."""
    os.open(alive, os.O_WRONLY)
    os.environ |= {"PIDS": f"{alive}.pids", "TMPDIR": str(Path(alive).parent)}
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    if late:
        join = ranks.join_group
        ranks.join_group = lambda device: (
            join(device) if os.environ["RANK"] == "0" else signal.pause()
        )
    words = "bench run --domain graph --loss infonce --device cpu --devices 2 --recipe epochs=20"
    sys.argv = [*words.split(), "--results", results]
    main()


def hurry(results: str, alive: str) -> None:
    """Train with a late rank, for which the other waits only a moment."""
    ranks.MEETING_TIMEOUT, launch.GRACE = timedelta(seconds=1), 0
    train(results, alive, late=True)


def prepare() -> None:
    """Import everything, and put small things in the place of large ones."""
    stub_domain.install(pytest.MonkeyPatch())
    launch.start_rank = start  # type: ignore[assignment]
    training.SECONDS_BETWEEN_CHECKPOINTS = -1
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        stub_domain.cell(Path(folder))
