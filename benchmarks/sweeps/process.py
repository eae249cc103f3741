"""A worker process, seen from the sweep that gives it cells; `worker` is its own side.

A worker of several ranks is `python -m contrastbench.benchmarks.sweeps.process N DEVICE`: it starts
them, passes signals on, and says which one took the others along. Messages and replies are rank
0's. Brings no torch.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from joblib import cpu_count

from contrastbench.benchmarks.running.launch import Job, launch, launched
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.signals import end_on_sigterm
from contrastbench.benchmarks.sweeps.plan import Task
from contrastbench.errors import UserError, tell

Reply = dict[str, Any]
MODULE = "contrastbench.benchmarks.sweeps.worker"
COMMAND = [sys.executable, "-P", "-m", MODULE]  # -P: a user's files here are no modules
LOST, NO_MEMORY = 76, 77  # exit codes of several ranks; the last line on standard error says why
GO_ON = "the same command goes on; torchrun repeats it by itself with --max-restarts"
# of CUDA and ROCm
DEVICES, DEVICE_PATTERNS = Path("/dev"), ("nvidia[0-9]*", "nvhost*", "kfd", "dxg")
COUNT_COMMAND = [sys.executable, "-P", "-c", "import torch; print(torch.cuda.device_count())"]


def command(options: Options) -> list[str]:
    """Return the command of a worker; several ranks are started by `run_ranks` or torchrun."""
    if launched():
        return [*COMMAND, options.device]
    if options.devices == 1:
        return COMMAND
    return [sys.executable, "-P", "-m", __name__, str(options.devices), options.device]


class Worker:
    """A process that gets one cell after another."""

    code: tuple[str, ...] | None = None  # from outside this package, which it has run

    def __init__(self, options: Options, jobs: int) -> None:
        self.options = options
        try:
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        except OSError as error:
            raise UserError(
                f"no worker process can be started ({error.strerror}): name a folder with TMPDIR"
            ) from None
        self.heard = 0  # bytes there when it got its task
        cores = str(max(1, cpu_count() // (jobs * options.devices)))
        self.process = subprocess.Popen(
            command(options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
            env={"OMP_NUM_THREADS": cores, **os.environ, "LOKY_MAX_CPU_COUNT": cores},
            start_new_session=True,  # Ctrl-C reaches the sweep alone, which hands it on
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def is_ready(self) -> bool:
        """Return whether it has imported what it needs; False: it has ended."""
        return bool(self.answer()["status"] == "ready")

    def do(self, task: Task, wait: bool) -> Reply:
        self.heard = self.said
        with suppress(BrokenPipeError):
            message = self.message(task, wait)
            print(json.dumps(message, default=str), file=self.process.stdin, flush=True)
        reply = self.answer()
        if reply.get("last"):
            self.process.wait()
        return reply

    def message(self, task: Task, wait: bool) -> Reply:
        return {
            "experiment": dataclasses.asdict(task.experiment),
            "seed": task.seed,
            "options": vars(self.options),
            "cores": cpu_count(),  # the same for any number of jobs: threads can change a number
            "claim": task.name,
            "wait": wait,
            "loss_code": task.experiment.loss.code,
        }

    def answer(self) -> Reply:
        """The worker's next line, or that there will be none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line.endswith("\n"):
            return dict(json.loads(line))
        code = self.process.wait()
        words = self.last_words()
        error = words if code in (LOST, NO_MEMORY) else f"the process {ending(code)}: {words}"
        return {"status": "failed", "error": error, "code": code}

    @property
    def said(self) -> int:
        """Bytes on its standard error so far."""
        return os.fstat(self.errors.fileno()).st_size

    def last_words(self) -> str:
        """The last line that it wrote to standard error since it got its task."""
        words = os.pread(self.errors.fileno(), self.said - self.heard, self.heard)
        return (words.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]

    def end(self) -> None:
        self.process.communicate()
        self.errors.close()


def ending(code: int) -> str:
    """Say how a process ended, by its exit code.

    >>> ending(-9)
    'was killed by SIGKILL (out of memory?)'
    """
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + " (out of memory?)" * (-code == signal.SIGKILL)


def ran_out(reply: Reply) -> bool:
    """Return whether a cell ended for want of memory, as far as can be told from outside."""
    return reply["status"] == "oom" or reply.get("code") in (-signal.SIGKILL, NO_MEMORY)


def slots(device: str, jobs: int, per_device: bool = False, devices: int = 1) -> list[str]:
    """The device of each worker, or its first one: all that `auto` and `cuda` mean, in turns.

    Args:
        device: as users name it.
        jobs: workers, in all or on each device.
        per_device: the latter.
        devices: number of devices of each worker, which has those that follow the first.

    >>> slots("cuda:1", 2), slots("cpu", 2, per_device=True)
    (['cuda:1', 'cuda:1'], ['cpu', 'cpu'])
    """
    shared = device not in ("auto", "cuda") or launched()  # torchrun gives its ranks their devices
    visible = () if shared else cuda_devices()
    names = visible[: len(visible) - devices + 1 : devices] or (device,)
    return [names[i % len(names)] for i in range(jobs * (len(names) if per_device else 1))]


def check_devices(device: str, devices: int) -> None:
    """Raise UserError if there are fewer devices than each worker is to have."""
    if devices > 1 and device not in ("auto", "cpu", "cuda"):
        both = f"--devices {devices} and --device {device}"
        raise UserError(f"{both}: give cpu or cuda, each has one")
    cards = len(cuda_devices()) if devices > 1 and device != "cpu" else 0
    if cards < devices and (cards or device == "cuda") and devices > 1:
        raise UserError(
            f"--devices {devices} and {cards} CUDA devices: each needs one, "
            "give fewer --devices or --device cpu"
        )


@cache
def cuda_devices() -> tuple[str, ...]:
    """The CUDA devices that workers will see, by torch's names.

    Where the system shows a driver, torch is asked, in a process of its own: it alone knows what
    CUDA_VISIBLE_DEVICES, ROCm and parts of cards leave. No answer counts as none, and the workers
    say what is wrong.
    """
    if sys.platform == "linux" and not any(any(DEVICES.glob(sign)) for sign in DEVICE_PATTERNS):
        return ()
    said = subprocess.run(COUNT_COMMAND, capture_output=True, text=True).stdout.split()
    return tuple(f"cuda:{i}" for i in range(int(said[-1]) if said else 0))


def run_ranks() -> None:
    end_on_sigterm()
    devices, (kind, _, card) = int(sys.argv[1]), sys.argv[2].partition(":")
    ending = launch(Job([MODULE, kind], sys.stdout, input=None, card=int(card or 0)), devices)
    if not ending.lost:
        sys.exit(ending.code)
    tell(ending.lost)
    sys.exit(NO_MEMORY if ending.in_need_of_memory else LOST)


if __name__ == "__main__":
    run_ranks()
