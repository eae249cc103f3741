"""Processes to be killed, or only looked at: one has imported what they need, and forks them.

A test asks by `Lives` for lives that are lived side by side. Each is the name of a function of a
module, its arguments, and the death: None, seconds after which SIGKILL comes, or seconds and
another signal. What all lives share, the module's `prepare` does before.
"""

import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from types import ModuleType
from typing import Any

ALONE = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}  # a fork takes no threads along


class Lives:
    """The process that forks, seen from a test."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self()  # until it has imported everything: lives are timed

    def __call__(self, *lives: Any) -> list[int]:
        """Return the exit codes of these lives, once all have ended."""
        self.pipe.send(lives)
        return list(self.pipe.recv())

    def seconds(self, *life: Any) -> float:
        """How long this one lives if nobody kills it."""
        start = time.perf_counter()
        assert self((*life, None)) == [0]
        return time.perf_counter() - start


@contextmanager
def answering(answer: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """A pipe to a new process, whose function gets the other end behind its arguments."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=answer, args=(*arguments, theirs))
    process.start()
    theirs.close()
    with ours:
        yield ours
    process.join()


@contextmanager
def lives(module: ModuleType) -> Iterator[Lives]:
    """Whoever lives the functions of a module."""
    with answering(serve, module.__name__) as pipe:
        yield Lives(pipe)


def disk_takes(seconds: float) -> None:
    """That long for each sync: in memory a kill would seldom hit a write."""
    sync = os.fsync

    def slowly(handle: int) -> None:
        time.sleep(seconds)
        sync(handle)

    os.fsync = slowly  # type: ignore[assignment]


def kill(deaths: list[tuple[float, int, ForkProcess]]) -> None:
    """Send signals, each at its moment: seconds from now, the signal, the process.

    A moment was drawn from a life that may have been long because the machine was busy: nobody
    waits for that of a process that has ended.
    """
    begun = time.monotonic()
    for after, number, process in sorted(deaths, key=lambda death: death[0]):
        while process.is_alive() and (left := begun + after - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))
        if process.is_alive():
            os.kill(process.pid or 0, number)


def serve(name: str, pipe: Connection) -> None:
    """Fork, kill and bury, until nobody asks."""
    os.environ |= ALONE
    module, fork = importlib.import_module(name), get_context("fork").Process
    module.prepare()
    with suppress(EOFError):
        while True:
            deaths, lives = [], []
            for what, *arguments, death in pipe.recv():
                lives.append(fork(target=getattr(module, what), args=arguments))
                lives[-1].start()
                if death is not None:
                    after, number = death if isinstance(death, tuple) else (death, signal.SIGKILL)
                    deaths.append((after, number, lives[-1]))
            kill(deaths)
            pipe.send([join(life) for life in lives])


def join(life: ForkProcess) -> int | None:
    life.join()
    return life.exitcode
