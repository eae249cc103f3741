"""Measure claims, publishing and planning for `bench perf records`: many workers, no training.

Processes share a folder of results and a sweep whose cells train nothing. Each process gives turns
to its workers. A worker claims a cell, holds the claim for a turn, and publishes a made-up record.
Some processes kill themselves while their workers hold claims, and others take their place.
A worker passes over cells whose record is there, so that only claimed cells are counted. The true
worker also compares the other seeds of a cell. Brings no torch.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from filelock import Timeout

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Cell
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.claims import claim
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.plan import Plan, lines, make_plan
from contrastbench.benchmarks.sweeps.shard import WHOLE, Shard
from contrastbench.domains.registry import loaded
from contrastbench.errors import UserError

DEFAULT = ("2000", "20", "4")  # cells, workers, processes
LOSSES = (
    *("infonce", "debiased", "hcl", "rince", "alpha_cl", "mean_variance", "adnce", "phi_dro"),
    *("attentionnce", "cpc", "npair", "dcl_w", "clip", "hardness", "macl", "weince", "sogclr"),
    *("isogclr", "dhel", "mlcpc", "rmlcpc", "renyi", "nwj", "triplet", "jsd"),
)
EXPERIMENTS = 100  # these losses in four domains
DYING = 0.2  # of the processes
SLOW, DELAY = 0.01, 0.02  # one record of a hundred waits for its disk so many seconds
COLUMNS = (
    *("by", "cells", "workers", "processes", "workers that died", "lost", "twice", "seconds"),
    *("overhead a cell, ms: median", "95 %", "planner, s", "planner, MiB"),
)
FORK = get_context("fork")
Claim = Callable[[Path, bool], AbstractContextManager[bool]]


class Work(NamedTuple):
    """A cell with the files of its claim and its record."""

    cell: Cell
    lock: Path
    path: Path


@dataclass(frozen=True)
class Fleet:
    """The workers of some processes, and what they share."""

    folder: Path
    workers: int
    processes: int
    dying: int = 0  # processes that kill themselves
    delay: float = 0.0  # seconds that a slow disk takes
    sharded: bool = False
    killed: list[int] = field(default_factory=list)  # processes, as their exit codes say

    def part(self, index: int, tasks: Sequence[Task]) -> list[Work]:
        """Return the cells that a process may run: all, or those of its shard."""
        shard = Shard(index, self.processes) if self.sharded else WHOLE
        return [work(task, self.folder) for task in tasks if shard.has(task)]

    def run(self, tasks: Sequence[Task]) -> list[tuple[float, bool]]:
        """Let all processes run, and return for each cell that ran its overhead and if it is new.

        A process that was killed has a successor, which begins with all cells of its part again.
        """
        whole = None if self.sharded else self.part(0, tasks)
        parts = [whole or self.part(index, tasks) for index in range(self.processes)]
        going = {index: self.start(parts[index], index < self.dying) for index in range(len(parts))}
        while going:
            wait([process.sentinel for process in going.values()])
            for index, process in list(going.items()):
                code = process.exitcode  # asked once: it may end between two questions
                if code == -signal.SIGKILL:
                    self.killed.append(index)
                    going[index] = self.start(parts[index], dies=False)
                elif code:
                    raise RuntimeError(f"process {index} ended with exit code {code}")
                elif code == 0:
                    del going[index]
        rows = (line.split() for line in self.log.read_text().splitlines())
        return [(float(overhead), new == "True") for overhead, new in rows]

    def start(self, part: Sequence[Work], dies: bool) -> ForkProcess:
        """Start a process; see `process`."""
        started = FORK.Process(target=self.process, args=(part, dies))
        started.start()
        return started

    @property
    def log(self) -> Path:
        """Return the file to which all processes add a line for each cell that they ran."""
        return self.folder / "log"

    def process(self, part: Sequence[Work], dies: bool) -> None:
        """Give turns to the workers of a process until no cell is left; or be killed within."""
        queue, count = deque(part), -(-self.workers // self.processes)
        at_once = deque(worker(queue, claim_of(self.sharded), self.delay) for _ in range(count))
        left = random.randint(count, len(part) // self.processes + count) if dies else -1
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        while at_once:
            turn = next(at_once[0], None)
            if turn is None:
                at_once.popleft()
            for overhead, new in turn or ():
                os.write(handle, f"{overhead} {new}\n".encode())
            at_once.rotate(-1)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def claim_of(sharded: bool) -> Claim:
    """Return how a cell is claimed; the cells of a shard are nobody else's."""
    return (lambda *_: nullcontext(True)) if sharded else claim


def worker(
    queue: deque[Work], hold: Claim, delay: float = 0.0
) -> Iterator[list[tuple[float, bool]]]:
    """Run one cell after another, and yield at the end of each turn the cells that are done.

    Each is the seconds that claiming and publishing took, and whether nobody was first.
    """
    done: list[tuple[float, bool]] = []
    while queue:
        one = queue.popleft()
        if one.path.exists():
            continue
        begun = time.perf_counter()
        try:
            with hold(one.lock, False):
                if reading.find(one.path):
                    continue
                took = time.perf_counter() - begun
                yield done  # in training
                time.sleep(delay * (random.random() < SLOW))
                begun = time.perf_counter()
                new = store.publish(record_of(one.cell), one.path)
            done = [(took + time.perf_counter() - begun, new)]
        except Timeout:
            queue.append(one)
            yield done
            done = []
    yield done


def work(task: Task, folder: Path) -> Work:
    """Return the work of a task on made-up data."""
    cell = Cell(task.experiment, task.seed, "0" * 64, {})
    return Work(cell, folder / "claims" / f"{task.name}.lock", cell.path(folder))


def record_of(cell: Cell) -> Record:
    """Return a record that no training made."""
    found = {"metrics": {"accuracy": 50.0}, "main": "accuracy", "details": {}}
    about = {"seconds": 1.0, "peak_memory_mib": 1.0, "environment": {}}
    whole = {"schema": store.SCHEMA, **cell.identity, "key": cell.key, "status": "ok"}
    return {**whole, **found, **about}  # type: ignore[typeddict-item]


def sweep_file(folder: Path, cells: int) -> Path:
    """Write a sweep with so many cells, and return its path."""
    domains = [f"{name}: {{}}" for name, about in loaded().items() if about.perf]
    path = folder / "sweep.yaml"
    domain_lines = f"domains: {{{', '.join(domains)}}}\nlosses: [{', '.join(LOSSES)}]\n"
    path.write_text(f"seeds: 0-{cells // EXPERIMENTS - 1}\n{domain_lines}")
    return path


def plan_of(file: Path, results: Path) -> Plan:
    """Return the plan of a sweep."""
    return make_plan(str(file), [], None, False, None, results)


def numbers(names: Sequence[str]) -> tuple[int, int, int]:
    """Return the numbers of cells, workers and processes.

    >>> numbers(["2000", "20", "4"])
    (2000, 20, 4)
    """
    found = [int(name) for name in names if re.fullmatch("[1-9][0-9]{0,6}", name)]
    if len(found) != len(DEFAULT) or len(names) != len(DEFAULT) or found[0] % EXPERIMENTS:
        raise UserError(
            f"bench perf records {' '.join(names)}: give the numbers of cells (hundreds), workers "
            f"and processes, such as {' '.join(DEFAULT)}"
        )
    return found[0], found[1], found[2]


def report(names: list[str], *_: object) -> Iterator[str]:
    """Yield the lines of a Markdown table: one for claims, and one for shards."""
    cells, workers, processes = numbers(names)
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- |" + " ---: |" * (len(COLUMNS) - 1)
    for sharded in (False, True):
        with tempfile.TemporaryDirectory() as name:
            dying = max(1, round(DYING * processes))
            fleet = Fleet(Path(name), workers, processes, dying, DELAY, sharded)
            yield row(fleet, sweep_file(fleet.folder, cells))


def row(fleet: Fleet, file: Path) -> str:
    """Return the line of a fleet."""
    tasks = plan_of(file, fleet.folder).tasks()
    begun = time.perf_counter()
    ran = fleet.run(tasks)
    seconds, planned = time.perf_counter() - begun, in_process(file, fleet.folder)
    took = [1e3 * overhead for overhead, _ in ran]
    died = len(fleet.killed) * -(-fleet.workers // fleet.processes)
    lost = len(tasks) - int(planned["done"])
    numbers = [len(tasks), fleet.workers, fleet.processes, died, lost, twice(ran)]
    times = [seconds, median(took), quantiles(took, n=20)[-1], planned["seconds"], planned["mib"]]
    texts = [*map(str, numbers), *(f"{time:.1f}" for time in times)]
    return f"| {'--shard' if fleet.sharded else 'claims'} | {' | '.join(texts)} |"


def twice(ran: Sequence[tuple[float, bool]]) -> int:
    """Return how many cells ran though another worker's record came first."""
    return sum(not new for _, new in ran)


def in_process(file: Path, results: Path) -> dict[str, float]:
    """Plan in a process of its own, and return its seconds, its MiB and the cells that are done."""
    begun = time.perf_counter()
    words = [sys.executable, "-m", __name__, str(file), str(results)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {"seconds": time.perf_counter() - begun, **json.loads(done.stdout)}


@one_moment()
def main() -> None:
    """Plan the sweep of a command line as `bench plan` does, and print what that took."""
    plan = plan_of(Path(sys.argv[1]), Path(sys.argv[2]))
    *_, total = lines(plan, Costs(plan.results))
    done = re.findall("([0-9]+) done", total)[0]
    peak = re.findall("VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[0]
    print(json.dumps({"done": int(done), "mib": int(peak) / 2**10}))


if __name__ == "__main__":
    main()
