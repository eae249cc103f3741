"""A process that runs one cell after another for a sweep: a line of JSON in for each cell, one out.

It ends when its standard input does. If that happens within a cell, the sweep is gone, and the
training that nobody waits for writes its checkpoint.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from filelock import Timeout

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.files import host
from contrastbench.benchmarks.records.store import Fields, cell_of
from contrastbench.benchmarks.records.writable import NotWritten
from contrastbench.benchmarks.running.interruption import end_on_sigterm
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import (
    NoData,
    NoMemory,
    measure_steps,
    rehearse,
    run,
)
from contrastbench.benchmarks.running.standard_output import private_channel
from contrastbench.benchmarks.sweeps.claims import claim
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

Message = dict[str, Any]


def main() -> None:
    """Answer every line of standard input."""
    end_on_sigterm()
    channel = private_channel()
    lines: SimpleQueue[str | None] = SimpleQueue()
    busy = threading.Event()
    threading.Thread(target=listen, args=(lines, busy), daemon=True).start()
    reply: Message = {"status": "ready"}
    while True:
        print(json.dumps(reply), file=channel, flush=True)
        line = lines.get()
        if line is None:
            return
        busy.set()
        reply = answer(json.loads(line))
        busy.clear()


def listen(lines: "SimpleQueue[str | None]", busy: threading.Event) -> None:
    """Pass lines on; their end within a cell is SIGTERM."""
    for line in sys.stdin:
        lines.put(line)
    lines.put(None)
    if busy.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


def answer(message: Message) -> Message:
    """Run the cell: a failure is an answer like any other."""
    try:
        experiment, options = to_experiment(message["experiment"]), to_options(message["options"])
        check_planned(experiment.loss, message["loss_code"])
        if tried := {"rehearse": rehearse, "measure": measure_steps}.get(message["work"]):
            return of_trial(tried(experiment, message["seed"], options, message["cores"]))
        claims, turns = options.results / "claims", list[Path]()
        with claim(claims / f"{message['claim']}.lock", message["wait"]):
            turn = partial(take_turn, claims / turn_name(), turns)
            finished = experiment.finished(options.results, message["seed"])
            before = {cell_of(record) for record in finished}
            record, _ = run(experiment, message["seed"], options, message["cores"], turn)
    except Timeout:
        return {"status": "claimed"}
    except NotWritten as error:
        unwritten = {"record": error.record} if error.record else {}
        return {"status": "unwritten", "error": str(error), **unwritten}
    except NoMemory as error:
        return {"status": "oom", "error": str(error)}
    except UserError as error:
        return {"status": "refused", "no_data": isinstance(error, NoData), "error": str(error)}
    except Exception as error:
        return {"status": "failed", "error": repr(error)}
    return {
        "status": record["status"],
        "error": record["details"].get("error"),
        "seconds": record.get("seconds"),
        "made": cell_of(record) not in before,
        "in_turn": bool(turns),
    }


def check_planned(loss: LossSpec, code: str) -> None:
    """Raise unless the code of a user's loss is still that of the plan.

    Raises:
        UserError: its file was edited since.
    """
    if loss.code != code:
        raise UserError(f"{loss.name} was edited after the sweep was planned: run the sweep again")


@contextmanager
def take_turn(path: Path, turns: list[Path]) -> Iterator[None]:
    """Hold the lock of those that take turns, and note it."""
    turns.append(path)
    with claim(path, wait=True):
        yield


def turn_name() -> str:
    """The lock of trainings that take more cores than their share: those of one sweep take turns.

    Beside each other they would take longer than one after the other: their threads wait for each
    other, and each for one that does not run.
    """
    return f"cores-{host()}-{os.getppid()}.lock"


def of_trial(outcome: Fields) -> Message:
    """Return the result of first steps as a message."""
    return {**outcome, "error": outcome.get("details", {}).get("error")}


def to_experiment(values: Message) -> Experiment:
    """The experiment of a message."""
    return Experiment(**values | {"loss": LossSpec(**values["loss"])})


def to_options(values: Message) -> Options:
    """The options of a message."""
    root = values["data_root"]
    paths = {"results": Path(values["results"]), "data_root": None if root is None else Path(root)}
    return Options(**values | paths)


if __name__ == "__main__":
    main()
