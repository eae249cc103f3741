"""Trainings on two devices to be killed: who launches them, and both ranks, are forked.

A module of its own, so that processes can be started with it, see forked.py.
"""

import os
import signal
import sys
from datetime import timedelta
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import stub_domain
from contrastbench.benchmarks.cli.main import main as bench
from contrastbench.benchmarks.running import launch, ranks, training

inputs: list[int] = []  # the launcher's ends of the ranks' standard inputs


class Rank(ForkProcess):
    """A forked process, as `launch` sees one that it has started."""

    def poll(self) -> int | None:
        return self.exitcode

    def send_signal(self, number: int) -> None:
        if self.is_alive():
            os.kill(self.pid or 0, number)

    def __enter__(self) -> "Rank":
        return self

    def __exit__(self, *_: object) -> None:
        self.join()


def start(rank: int, devices: int, folder: Path, job: object) -> Rank:
    (folder / f"{rank}.log").touch()
    end, own = os.pipe()
    inputs.append(own)
    process = Rank(target=live, args=(rank, devices, folder, end))
    process.start()
    os.close(end)
    return process


def live(rank: int, devices: int, folder: Path, end: int) -> None:
    """Be a rank, with the handlers of signals that a new process has."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for other in inputs:
        os.close(other)
    os.dup2(end, 0)
    os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))
    os.environ |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(devices))
    os.environ[launch.MEETING] = f"file://{folder}/meeting"
    main()


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
