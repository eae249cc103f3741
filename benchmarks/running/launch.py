"""Start a command in a process for each device, as torchrun does, for `--devices N`."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from contrastbench.benchmarks.running.signals import Interruption
from contrastbench.errors import MEETING, TOLD, UserError

EXIT_OF_LOST = 75  # exit code of one that misses another
GRACE = 20  # seconds to end by themselves for those that miss another
NO_MEMORY = ("MemoryError", "can't allocate memory", "SIGKILL")  # in the last words of a process

Process = subprocess.Popen[bytes]


def launched() -> bool:
    """Return whether this process is one of several, started by `launch` or by torchrun."""
    told = {name: os.environ.get(name, "") for name in TOLD}
    if not all(told.values()):
        return False
    if wrong := [f"{k}={v}" for k, v in told.items() if not re.fullmatch("[0-9]{1,9}", v)]:
        raise UserError(f"{wrong[0]} is no number: unset it, or let torchrun set it")
    rank, count = int(told["RANK"]), int(told["WORLD_SIZE"])
    if rank >= count > 1:
        raise UserError(f"RANK={rank} is none of WORLD_SIZE={count}: let torchrun set both")
    return count > 1


def started() -> bool:
    """Return whether `launch` started this process, and says how all ended."""
    return MEETING in os.environ


@contextmanager
def ended_at_once() -> Iterator[None]:
    """End one of several processes with its exit code, without messages from gloo.

    Its threads may still wait for a process that is gone; to take them down aborts the process now
    and then ("terminate called without an active exception", PyTorch's issue 190489).
    """
    several = False
    with suppress(UserError):  # the command says it in one line
        several = launched()
    if not several:
        yield
        return
    code: object = 0
    try:
        yield
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


class Ending(NamedTuple):
    """How several processes ended."""

    code: int
    lost: str = ""  # a line on the process that took the others with it

    @property
    def in_need_of_memory(self) -> bool:
        """Return whether that process lacked memory, as far as can be told from outside."""
        return any(sign in self.lost for sign in NO_MEMORY)


@dataclass(frozen=True)
class Job:
    """A module with its words, to be run on several devices."""

    command: Sequence[str]
    output: IO[str]  # standard output of the first process; the others have none
    input: int | None = subprocess.PIPE  # of the first: one that ends with this process, or its own
    card: int = 0  # number of the first process's device among those of its kind


def launch(job: Job, devices: int) -> Ending:
    """Run a job on so many devices.

    A signal is passed on, and all end after the same step. Where one process ends on its own, the
    others do too.
    """
    with tempfile.TemporaryDirectory(prefix="contrastbench-") as folder:
        processes, passed = list[Process](), 0
        try:
            with Interruption() as interruption:  # one that is being started would be forgotten
                for rank in range(devices):
                    processes.append(start_rank(rank, devices, Path(folder), job))
            interruption.stop_if_asked()
            wait(processes)
        except (KeyboardInterrupt, SystemExit) as stop:
            passed = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else signal.SIGTERM
            for process in processes:
                process.send_signal(passed)
            wait(processes)
        finally:
            codes = [process.poll() for process in processes]
            for process in processes:
                with process:  # which waits for its end
                    process.kill()
        if passed and -passed in codes:  # they had not met, and so had nothing to finish
            return Ending(128 + passed)
        return exit_code(codes, Path(folder))


def start_rank(rank: int, devices: int, folder: Path, job: Job) -> Process:
    """Start a process that knows its rank and the number of its card."""
    about = dict(zip(TOLD, map(str, (rank, job.card + rank, devices, devices)), strict=True))
    with (folder / f"{rank}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", *job.command],
            env={**os.environ, **about, MEETING: f"file://{folder}/meeting"},
            stdin=job.input if rank == 0 else subprocess.PIPE,
            stdout=job.output if rank == 0 else subprocess.DEVNULL,
            stderr=None if rank == 0 else log,
            start_new_session=True,  # Ctrl-C is for this process, which passes it on
        )


def wait(processes: Sequence[Process]) -> None:
    """Wait until all have ended, or some have and the others had time to follow."""
    deadline = None
    while any(running := [process.poll() is None for process in processes]):
        if deadline is None and not all(running):
            deadline = time.monotonic() + GRACE
        if deadline is not None and time.monotonic() > deadline:
            return
        time.sleep(0.05)


def exit_code(codes: Sequence[int | None], folder: Path) -> Ending:
    """Return the exit code of all, and name the process at fault if the first could not.

    That is one that failed, or else ended too early, or else had to be stopped, which has no code.
    """
    first = codes[0] or 0
    if (first > 0 and first != EXIT_OF_LOST) or {*codes} == {0}:
        return Ending(first)
    faults = [(code == EXIT_OF_LOST, code is None, code == 0) for code in codes]
    rank = faults.index(min(faults))
    return Ending(
        1,
        f"process {rank} of {len(codes)} ended ({how_ended(rank, codes[rank], folder)}), "
        "and all with it: the same command goes on from the last checkpoint",
    )


def how_ended(rank: int, code: int | None, folder: Path) -> str:
    """Return how a process ended: the signal, or its last words."""
    if code is None:
        return "it had to be stopped"
    log = folder / f"{rank}.log"
    lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
    how = signal.Signals(-code).name if code < 0 else [f"exit code {code}", *lines][-1]
    return how.removeprefix(f"[rank{rank}]: ")  # torch's


def private_channel() -> IO[str]:
    """Return standard output, and send other output to standard error.

    A user's loss may print, and its words belong to standard error from now on.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel
