"""A process that runs one cell after another for a sweep: a line of JSON in for each cell, one out.

It ends when its standard input does. If that happens within a cell, the sweep is gone, and the
training that nobody waits for writes its checkpoint. Where it is one of several ranks, the first
alone reads and replies, and all run each cell together. A cell that fails ends them all, since
ranks that fail apart cannot go on together; the sweep starts new ones.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from filelock import Timeout

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.files import host
from contrastbench.benchmarks.records.store import NotWritten
from contrastbench.benchmarks.running import launch, ranks
from contrastbench.benchmarks.running.devices import choose_device
from contrastbench.benchmarks.running.opening import NoData, NoMemory
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.running.signals import end_on_sigterm
from contrastbench.benchmarks.sweeps.claims import claim
from contrastbench.distributed import ProcessLost
from contrastbench.errors import UnusableSamples, UserError
from contrastbench.losses.spec import LossSpec

Message = dict[str, Any]


def main() -> None:
    end_on_sigterm()
    channel = launch.private_channel()
    with launch.ended_at_once():
        join(sys.argv[1] if launch.launched() else "", channel)


def join(device: str, channel: IO[str]) -> None:
    """Run cells with the other ranks, if there are any, until the sweep ends."""
    with ranks.joined_ranks(device and choose_device(device), reads_input=True):
        serve(channel)


def serve(channel: IO[str]) -> None:
    """Tell the sweep that this worker is ready, and answer its messages until there are no more."""
    inbox, reply = Inbox(), {"status": "ready"}
    if ranks.is_first():
        threading.Thread(target=inbox.listen, daemon=True).start()
    while True:
        if ranks.is_first():
            print(json.dumps(reply), file=channel, flush=True)
        if reply.get("last"):
            sys.exit(launch.EXIT_OF_LOST)
        message = inbox.next()
        if message is None:
            return
        inbox.busy.set()
        reply = answer_message(message)
        inbox.busy.clear()


class Inbox:
    """The lines of standard input; their end within a cell is SIGTERM."""

    def __init__(self) -> None:
        self.lines: SimpleQueue[str | None] = SimpleQueue()
        self.busy = threading.Event()

    def listen(self) -> None:
        for line in sys.stdin:
            self.lines.put(line)
        self.lines.put(None)
        if self.busy.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    @ranks.by_first
    def next(self) -> Message | None:
        """Return the next message, or None at their end."""
        line = self.lines.get()
        return None if line is None else json.loads(line)


def answer_message(message: Message) -> Message:
    """Run the cell: a failure is an answer like any other, and the last one of several ranks."""
    try:
        reply = attempt(message)
    except ProcessLost:
        raise
    except Exception as error:
        if not ranks.is_first():
            raise
        reply = failure(error)
    last = launch.launched() and reply["status"] not in (*store.FINAL_STATUSES, "claimed")
    return {**reply, "last": last}


def attempt(message: Message) -> Message:
    about = message["experiment"]
    experiment = Experiment(**about | {"loss": LossSpec(**about["loss"])})
    given = message["options"]
    paths = {name: given[name] and Path(given[name]) for name in ("results", "data_root")}
    options = Options(**given | paths)
    if experiment.loss.code != message["loss_code"]:
        name = experiment.loss.name
        raise UserError(f"{name} was edited after the sweep was planned: run the sweep again")
    claims = options.results / "claims"
    with held(claims / f"{message['claim']}.lock", message["wait"]) as ours:
        if not ours:
            return {"status": "claimed"}
        turn = partial(held, claims / turn_name(), wait=True)
        record, _ = run_cell(experiment, message["seed"], options, message["cores"], turn)
    return {
        "status": record["status"],
        "error": record["details"].get("error"),
        "seconds": record.get("seconds"),
    }


def failure(error: Exception) -> Message:
    if isinstance(error, NotWritten):
        unwritten = {"record": error.record} if error.record else {}
        return {"status": "unwritten", "error": str(error), **unwritten}
    if isinstance(error, NoMemory):
        return {"status": "oom", "error": str(error)}
    if isinstance(error, UserError):
        return {
            "status": "refused",
            "no_data": isinstance(error, NoData),
            "seed_alone": isinstance(error, UnusableSamples),
            "error": str(error),
        }
    return {"status": "failed", "error": repr(error)}


@contextmanager
def held(path: Path, wait: bool) -> Iterator[bool]:
    """Let the first rank hold a claim while all are in the block; say whether it may."""
    with ExitStack() as stack:

        @ranks.by_first
        def take() -> bool:
            try:
                stack.enter_context(claim(path, wait))
            except Timeout:
                return False
            return True

        yield take()


def turn_name() -> str:
    """The lock of trainings that take more cores than their share: those of one sweep take turns.

    Beside each other they would take longer than one after the other: their threads wait for each
    other, and each for one that does not run.
    """
    return f"cores-{host()}-{os.getppid()}.lock"


if __name__ == "__main__":
    main()
