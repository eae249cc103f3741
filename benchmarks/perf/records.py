"""Measure claims, publishing and planning for `bench perf records`: many workers, no training.

Processes share a folder of results and a sweep whose cells train nothing. Each process gives turns
to its workers. A worker claims a cell, looks for its record, holds the claim for a turn, and
publishes a made-up record.
Some processes kill themselves while their workers hold claims, and others take their place.
A worker passes over cells whose record is there, so that only claimed cells are counted. For each
claimed cell it does what a true worker does, but for data and training. Brings no torch.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple, TypeVar

from filelock import Timeout

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Cell
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.records.writable import check_writable
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.claims import claim
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.plan import Plan, make_plan, plan_lines
from contrastbench.benchmarks.sweeps.shard import WHOLE_SWEEP, Shard
from contrastbench.domains.registry import loaded_declarations
from contrastbench.errors import UserError

DEFAULT = ("2000", "20", "4")  # cells, workers, processes
MEASURED_LOSSES = (
    *("infonce", "debiased", "hcl", "rince", "alpha_cl", "mean_variance", "adnce", "phi_dro"),
    *("attentionnce", "cpc", "npair", "dcl_w", "clip", "hardness", "macl", "weince", "sogclr"),
    *("isogclr", "dhel", "mlcpc", "rmlcpc", "renyi", "nwj", "triplet", "jsd"),
)
EXPERIMENTS = 100  # these losses in four domains
DYING_SHARE = 0.2  # of the processes
SLOW_SHARE, SLOW_SECONDS = 0.01, 0.02  # one record of a hundred waits for its disk so many seconds
MEASURES = (
    *("by", "cells", "workers", "processes", "workers that died", "lost", "twice", "seconds"),
    *("overhead a cell, ms: median", "95 %", "planner, s", "planner, MiB"),
)
FORK = get_context("fork")
T = TypeVar("T")
Claim = Callable[[Path, bool], AbstractContextManager[bool]]
Turn = tuple[float, bool | None]  # seconds of a cell that is done, and whether nobody was first
IN_TRAINING: Turn = (0.0, None)


class CellFiles(NamedTuple):
    """A cell with the files of its claim and its record, and what a worker does to them."""

    cell: Cell
    folder: Path
    lock: Path
    path: Path

    def begin(self) -> bool:
        """Do what precedes a training, and return whether the cell needs one.

        The experiment is new to the process, as each message of a sweep makes one.
        """
        loss = replace(self.cell.experiment.loss)
        cell = replace(self.cell, experiment=replace(self.cell.experiment, loss=loss))
        list(cell.experiment.finished(self.folder, cell.seed))  # which were there before
        if cell.finished(self.folder):
            return False
        check_writable(self.path.parent)
        return True

    def end(self) -> bool:
        """Publish and read a made-up record, and return whether it is the first of its cell."""
        new = store.publish_record(made_up_record(self.cell), self.path)
        reading.find_record(self.path)
        return new


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

    def part(self, index: int, tasks: Sequence[Task]) -> list[CellFiles]:
        """Return the cells that a process may run: all, or those of its shard."""
        shard = Shard(index, self.processes) if self.sharded else WHOLE_SWEEP
        return [cell_files(task, self.folder) for task in tasks if shard.has(task)]

    def run(self, tasks: Sequence[Task]) -> list[tuple[float, bool]]:
        """Let all processes run, and return for each cell that ran its overhead and if it is new.

        A process that was killed has a successor, which begins with all cells of its part again.
        """
        parts = self.parts(tasks)
        going = {i: self.start(part, i < self.dying) for i, part in enumerate(parts)}
        while going:
            wait([process.sentinel for process in going.values()])
            now = {i: self.next(i, process, parts[i]) for i, process in going.items()}
            going = {i: process for i, process in now.items() if process}
        rows = (line.split() for line in self.log.read_text().splitlines())
        return [(float(overhead), new == "True") for overhead, new in rows]

    def parts(self, tasks: Sequence[Task]) -> list[list[CellFiles]]:
        """Return the cells of each process."""
        if self.sharded:
            return [self.part(index, tasks) for index in range(self.processes)]
        return [self.part(0, tasks)] * self.processes

    def next(
        self, index: int, process: ForkProcess, part: Sequence[CellFiles]
    ) -> ForkProcess | None:
        """Return a process that runs on, the successor of a killed one, or None after the end."""
        code = process.exitcode  # asked once: it may end between two questions
        if code == -signal.SIGKILL:
            self.killed.append(index)
            return self.start(part, dies=False)
        if code:
            raise RuntimeError(f"process {index} ended with exit code {code}")
        return process if code is None else None

    def start(self, part: Sequence[CellFiles], dies: bool) -> ForkProcess:
        """Start a process; see `process`."""
        started = FORK.Process(target=self.process, args=(part, dies))
        started.start()
        return started

    @property
    def log(self) -> Path:
        """Return the file to which all processes add a line for each cell that they ran."""
        return self.folder / "log"

    def process(self, part: Sequence[CellFiles], dies: bool) -> None:
        """Give turns to the workers of a process until no cell is left; or be killed within."""
        queue, count = deque(part), -(-self.workers // self.processes)
        workers = [worker(queue, claim_of(self.sharded), self.delay) for _ in range(count)]
        last = random.randint(count, len(part) // self.processes + count) if dies else None
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for overhead, new in islice(in_turns(workers), last):
            if new is not None:
                os.write(handle, f"{overhead} {new}\n".encode())
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)


def in_turns(workers: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield what each has at its turn, until all have ended.

    >>> list(in_turns([iter("ab"), iter("c")]))
    ['a', 'c', 'b']
    """
    waiting = deque(workers)
    while waiting:
        one = waiting.popleft()
        for turn in islice(one, 1):
            yield turn
            waiting.append(one)


def claim_of(sharded: bool) -> Claim:
    """Return how a cell is claimed; the cells of a shard are nobody else's."""
    return (lambda *_: nullcontext(True)) if sharded else claim


def worker(queue: deque[CellFiles], hold: Claim, delay: float = 0.0) -> Iterator[Turn]:
    """Run one cell after another, and yield each turn."""
    while queue:
        one = queue.popleft()
        try:
            yield from () if one.path.exists() else turns_of(one, hold, delay)
        except Timeout:
            queue.append(one)
            yield IN_TRAINING


def turns_of(one: CellFiles, hold: Claim, delay: float) -> Iterator[Turn]:
    """Claim a cell, hold it for a turn as if in training, and publish its record."""
    begun = time.perf_counter()
    with hold(one.lock, False):
        if not one.begin():
            return
        took = time.perf_counter() - begun
        yield IN_TRAINING
        time.sleep(delay * (random.random() < SLOW_SHARE))
        begun = time.perf_counter()
        new = one.end()
    yield took + time.perf_counter() - begun, new


def cell_files(task: Task, folder: Path) -> CellFiles:
    """Return the work of a task on made-up data."""
    cell = Cell(task.experiment, task.seed, "0" * 64, {})
    return CellFiles(cell, folder, folder / "claims" / f"{task.name}.lock", cell.path(folder))


def made_up_record(cell: Cell) -> Record:
    """Return a record that no training made."""
    found = {"metrics": {"accuracy": 50.0}, "main": "accuracy", "details": {}}
    about = {"seconds": 1.0, "peak_memory_mib": 1.0, "environment": {}}
    whole = {"schema": store.SCHEMA, **cell.identity, "key": cell.key, "status": "ok"}
    return {**whole, **found, **about}  # type: ignore[typeddict-item]


def write_sweep(folder: Path, cells: int) -> Path:
    """Write a sweep with so many cells, and return its path."""
    domains = [f"{name}: {{}}" for name, about in loaded_declarations().items() if about.perf]
    path = folder / "sweep.yaml"
    domain_lines = f"domains: {{{', '.join(domains)}}}\nlosses: [{', '.join(MEASURED_LOSSES)}]\n"
    path.write_text(f"seeds: 0-{cells // EXPERIMENTS - 1}\n{domain_lines}")
    return path


def sweep_plan(file: Path, results: Path) -> Plan:
    """Return the plan of a sweep."""
    return make_plan(str(file), [], None, False, None, results)


def fleet_size(names: Sequence[str]) -> tuple[int, int, int]:
    """Return the numbers of cells, workers and processes.

    >>> fleet_size(["2000", "20", "4"])
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
    cells, workers, processes = fleet_size(names)
    yield f"| {' | '.join(MEASURES)} |"
    yield "| --- |" + " ---: |" * (len(MEASURES) - 1)
    for sharded in (False, True):
        with tempfile.TemporaryDirectory() as name:
            dying = max(1, round(DYING_SHARE * processes))
            fleet = Fleet(Path(name), workers, processes, dying, SLOW_SECONDS, sharded)
            yield fleet_line(fleet, write_sweep(fleet.folder, cells))


def fleet_line(fleet: Fleet, file: Path) -> str:
    """Return the line of a fleet."""
    tasks = sweep_plan(file, fleet.folder).tasks()
    begun = time.perf_counter()
    ran = fleet.run(tasks)
    seconds, planned = time.perf_counter() - begun, in_process(file, fleet.folder)
    took = [1e3 * overhead for overhead, _ in ran]
    died = len(fleet.killed) * -(-fleet.workers // fleet.processes)
    lost = len(tasks) - int(planned["done"])
    numbers = [len(tasks), fleet.workers, fleet.processes, died, lost, duplicated_cells(ran)]
    times = [seconds, median(took), quantiles(took, n=20)[-1], planned["seconds"], planned["mib"]]
    texts = [*map(str, numbers), *(f"{time:.1f}" for time in times)]
    return f"| {'--shard' if fleet.sharded else 'claims'} | {' | '.join(texts)} |"


def duplicated_cells(ran: Sequence[tuple[float, bool]]) -> int:
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
    plan = sweep_plan(Path(sys.argv[1]), Path(sys.argv[2]))
    *_, total = plan_lines(plan, Costs(plan.results))
    done = re.findall("([0-9]+) done", total)[0]
    peak = re.findall("VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[0]
    print(json.dumps({"done": int(done), "mib": int(peak) / 2**10}))


if __name__ == "__main__":
    main()
