"""Start this command line in a process for each device, as torchrun does, for `--devices N`."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from contrastbench.errors import tell

MEETING = "CONTRASTBENCH_MEETING"  # where the processes find each other
LOST = 75  # exit code of one that misses another
GRACE = 20  # seconds to end by themselves for those that miss another

Process = subprocess.Popen[bytes]


def launched() -> bool:
    """Return whether this process is one of several, started by `launch` or by torchrun."""
    told = {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"} <= os.environ.keys()
    return told and int(os.environ.get("WORLD_SIZE", 1)) > 1


def started() -> bool:
    """Return whether `launch` started this process, and says how all ended."""
    return MEETING in os.environ


@contextmanager
def ended_at_once() -> Iterator[None]:
    """End one of several processes with its exit code, without messages from gloo.

    Its threads may still wait for a process that is gone; to take them down aborts the process now
    and then ("terminate called without an active exception", PyTorch's issue 190489).
    """
    if not launched():
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


def launch(devices: int, output: IO[str]) -> int:
    """Run this command line on so many devices; its exit code.

    A signal is passed on, and all end after the same step. Where one process ends on its own, the
    others do too.
    """
    with tempfile.TemporaryDirectory(prefix="contrastbench-") as folder:
        processes, passed = list[Process](), 0
        try:
            for rank in range(devices):
                processes.append(start(rank, devices, Path(folder), output))
            wait(processes)
        except (KeyboardInterrupt, SystemExit) as stop:
            passed = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else signal.SIGTERM
            for process in processes:
                process.send_signal(passed)
            wait(processes)
        finally:
            for process in processes:
                process.kill()
        codes = [ended(process) for process in processes]
        if passed and -passed in codes:  # they had not met, and so had nothing to finish
            return 128 + passed
        return explained(codes, Path(folder))


def start(rank: int, devices: int, folder: Path, output: IO[str]) -> Process:
    """Start a process that knows its rank; its standard input ends with this process."""
    number, count = str(rank), str(devices)
    about = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    with (folder / f"{rank}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "contrastbench", *sys.argv[1:]],
            env={**os.environ, **about, MEETING: f"file://{folder}/meeting"},
            stdin=subprocess.PIPE,
            stdout=output if rank == 0 else subprocess.DEVNULL,
            stderr=None if rank == 0 else log,
            start_new_session=True,  # Ctrl-C is for this process, which passes it on
        )


def ended(process: Process) -> int:
    """Return the exit code of a process that has ended or is being killed, and close its input."""
    with process:
        return process.wait()


def wait(processes: Sequence[Process]) -> None:
    """Wait until all have ended, or some have failed and the others had time to follow."""
    deadline = None
    while any(process.poll() is None for process in processes):
        if deadline is None and any(process.returncode for process in processes):
            deadline = time.monotonic() + GRACE
        if deadline is not None and time.monotonic() > deadline:
            return
        time.sleep(0.05)


def explained(codes: Sequence[int], folder: Path) -> int:
    """Return the exit code of all, and name the failed process if the first could not."""
    if codes[0] >= 0 and codes[0] != LOST:
        return codes[0]
    rank = next((rank for rank, code in enumerate(codes) if code not in (0, LOST)), 0)
    lines = (folder / f"{rank}.log").read_text(errors="replace").splitlines() or ["no word"]
    how = signal.Signals(-codes[rank]).name if codes[rank] < 0 else lines[-1]
    how = how.removeprefix(f"[rank{rank}]: ")  # torch's
    tell(
        f"bench: process {rank} of {len(codes)} ended ({how}), and all with it: "
        "the same command goes on from the last checkpoint"
    )
    return 1
