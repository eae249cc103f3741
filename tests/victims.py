"""Processes to be killed: one has imported what they need, and forks a child for each.

A module of its own, so that a process can be started with it. It reads lines of JSON, each a list
of victims that live side by side: the name of a function here, its arguments, and after how many
seconds to send SIGKILL (null: never). It answers with their wait statuses.
"""

import heapq
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from made_records import record_of

from contrastbench.benchmarks import report
from contrastbench.benchmarks.records import packing, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.merge import merge
from contrastbench.benchmarks.report import page  # noqa: F401 - imported before the fork
from contrastbench.benchmarks.tables import formats
from contrastbench.losses.spec import LossSpec

WORK = Experiment("graph", "PROTEINS", LossSpec("infonce"), {})
RECORDS = [record_of(WORK, seed, metrics={"accuracy": 50.0 + seed}) for seed in range(40)]


SLOW = {"tables": 0.004, "report": 0.2}  # seconds: they compute for long and write little
pause = 0.001


def sync(handle: int, once: Callable[[int], None] = os.fsync) -> None:
    """A disk's time: in memory a kill would seldom hit a write."""
    time.sleep(pause)
    once(handle)


os.fsync = sync


def publish(results: str, log: str, seeds: list[int]) -> None:
    """Publish records, and say of each that it is there."""
    with Path(log).open("ab", buffering=0) as said:
        for seed in seeds:
            record = RECORDS[seed]
            store.publish(record, store.path(Path(results), record))
            said.write(b"%d\n" % seed)


def unite(source: str, results: str) -> None:
    """`bench merge`."""
    merge([Path(source)], Path(results))


def pack(results: str) -> None:
    """`bench pack`."""
    list(packing.pack(Path(results)))


def tables(results: str) -> None:
    """`bench table --all`."""
    list(formats.write_all(Path(results)))


def page_of(results: str, output: str) -> None:
    """`bench report`."""
    report.write(["adnce-table5"], Path(results), Path(output))


VICTIMS = {
    **{"publish": publish, "merge": unite, "pack": pack},
    **{"tables": tables, "report": page_of},
}


def start(name: str, *arguments: object) -> int:
    """A child that does this."""
    global pause
    pid = os.fork()
    if pid:
        return pid
    try:
        pause = SLOW.get(name, pause)
        VICTIMS[name](*arguments)
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)


def main() -> None:
    """Fork, kill and bury, line by line."""
    for line in sys.stdin:
        started = [(after, start(*words)) for *words, after in json.loads(line)]
        begun, moments = time.monotonic(), [(a, pid) for a, pid in started if a is not None]
        heapq.heapify(moments)
        while moments:
            after, pid = heapq.heappop(moments)
            time.sleep(max(0.0, begun + after - time.monotonic()))
            os.kill(pid, signal.SIGKILL)
        print(json.dumps([os.waitpid(pid, 0)[1] for _, pid in started]), flush=True)


if __name__ == "__main__":
    main()
