"""Launchers of two ranks are killed at random moments; no process stays behind.

In every fifth launch the second rank never comes, so that the first one waits for it.
"""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import launches
from counts import dice, times
from forked import Lives, lives

KILLS = times(50)
PATIENCE = 50  # seconds for processes to end, less than a rank has to finish a step


@pytest.fixture(scope="module")
def launcher() -> Iterator[Lives]:
    """Keep a process that forks launches."""
    with lives(launches) as living:
        yield living


@contextmanager
def all_ended(folder: Path) -> Iterator[str]:
    """A pipe whose end is that of all processes that held it."""
    folder.mkdir()
    pipe, pids = folder / "alive", folder / "alive.pids"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    own = os.open(pipe, os.O_WRONLY)  # a pipe that nobody has opened has no end
    try:
        yield str(pipe)
        os.close(own)
        ended, _, _ = select.select([end], [], [], PATIENCE)
        left = [] if ended else [int(pid) for pid in pids.read_text().split()]
    finally:
        os.close(end)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, "processes stay behind"


def test_no_rank_outlives_its_launcher(
    launcher: Lives, ram: Path, found: Callable[[str], None]
) -> None:
    rng, killed = dice("launches"), 0
    with all_ended(ram / "whole") as pipe:
        length = launcher.seconds("train", str(ram / "whole" / "results"), pipe)
    assert len(list((ram / "whole").rglob("*seed0.json"))) == 1
    for kill in range(KILLS):
        with all_ended(ram / str(kill)) as pipe:
            late, death = kill % 5 == 0, rng.uniform(0, length)
            results = str(ram / str(kill) / "results")
            (status,) = launcher(("train", results, pipe, late, death))
            killed += os.WIFSIGNALED(status)
    assert killed >= KILLS // 2
    found(f"launches: {killed} launchers of two ranks killed: no process is left")


def test_a_rank_waits_for_another_for_some_time_only(launcher: Lives, ram: Path) -> None:
    with all_ended(ram / "late") as pipe:
        (status,) = launcher(("hurry", str(ram / "results"), pipe, None))
    assert os.waitstatus_to_exitcode(status) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ranks_that_wait_for_each_other_hear_a_signal(
    number: int, launcher: Lives, ram: Path
) -> None:
    with all_ended(ram / "late") as pipe:
        (status,) = launcher(("train", str(ram / "results"), pipe, True, (1.0, number)))
    assert os.waitstatus_to_exitcode(status) in (128 + number, -number)
