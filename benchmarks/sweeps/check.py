"""A rehearsal before a sweep: what would fail hours later fails in seconds. Brings no torch.

Each dataset with its recipe is read once, and each loss takes one step in each domain; results
must take records, and the disk has room. Scoring is not rehearsed: it is what takes the time.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.packs import packs_of
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.plan import Plan, unfinished_tasks
from contrastbench.benchmarks.sweeps.sweep import Failure, Sweep, failure_lines, scope


@dataclass(frozen=True)
class Checked:
    """The result of a rehearsal."""

    cells: int  # that are to be run
    steps: int  # that were tried for them
    failures: list[Failure]
    refused: dict[str, str]  # what a sweep need not try, by its scope
    memory: str  # what is too much for the machine; empty: nothing
    seconds: float

    def lines(self) -> Iterator[str]:
        """Yield a line for each problem, and a last line."""
        yield from failure_lines(self.failures)
        yield from filter(None, [self.memory])
        wrong = f"{len(self.failures)} fail" if self.failures else "nothing fails"
        yield (
            f"{self.cells} cells to run, {self.steps} first steps tried in {self.seconds:.0f} s: "
            f"{wrong}"
        )


def check_plan(plan: Plan, options: Options, jobs: int = 1, per_device: bool = False) -> Checked:
    """Try a first step of all that differs among the cells that are not done.

    Raises:
        UserError: a pack of a dataset is damaged, or its index and its records differ.
    """
    start, work = time.monotonic(), plan.tasks()
    for dataset in sorted({task.experiment.folder(options.results).parent for task in work}):
        for pack in packs_of(dataset):
            reading.said_invalid(pack)
    tasks = unfinished_tasks(work)
    some = list(distinct_tasks(tasks))
    sweep = Sweep(some, options, jobs, Costs(options.results), per_device, rehearsal=True)
    failures = sweep.run()
    memory = too_much(max(sweep.peaks, default=0.0), min(jobs, len(tasks)) * options.devices)
    took = time.monotonic() - start
    return Checked(len(tasks), len(some), failures, sweep.refused, memory, took)


def distinct_tasks(tasks: Iterable[Task]) -> Iterator[Task]:
    """Tasks that together have each dataset with each recipe, and each loss in each domain.

    One dataset after another: a worker keeps the last one that it has read.
    """
    seen = set[tuple[str, str]]()
    by_data: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        by_data.setdefault((task.experiment.domain, task.experiment.dataset), []).append(task)
    for task in chain.from_iterable(by_data.values()):
        loss = task.experiment.loss
        names = {
            ("data", scope(task.experiment, no_data=True)),
            ("loss", f"{task.experiment.domain} {loss.complete.name} {loss.code}"),
        }
        if not names <= seen:
            seen |= names
            yield task


def too_much(peak_mib: float, processes: int) -> str:
    """A line if so many processes of this size do not fit into the machine's memory.

    >>> too_much(100, 2), too_much(2.0**40, 2)[:40]
    ('', '2 processes of 1099511627776 MiB need mo')
    """
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    if peak_mib * processes < there:
        return ""
    needed = f"{processes} processes of {peak_mib:.0f} MiB"
    return f"{needed} need more than this machine has, {there:.0f} MiB"
