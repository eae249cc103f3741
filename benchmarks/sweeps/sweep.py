"""Run many cells in worker processes that take one cell at a time.

A worker imports torch once and runs many cells. What fails in a cell is caught there; a worker that
dies takes one cell with it, and the next worker gets the others. Records are published by the
workers alone, so this process may be killed at any moment: its workers notice, and the next sweep
goes on. Cells that ran out of memory beside others are tried once more at the end, each alone on
its device.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from tqdm import tqdm

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.store import check_writable
from contrastbench.benchmarks.running.launch import launched
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps import claims
from contrastbench.benchmarks.sweeps.costs import duration
from contrastbench.benchmarks.sweeps.plan import Plan, Task, unfinished_tasks
from contrastbench.benchmarks.sweeps.process import GO_ON, Reply, Worker, ran_out, slots
from contrastbench.domains.progress import SECONDS_BETWEEN_LINES, Progress
from contrastbench.errors import UserError, plural, printable
from contrastbench.losses.expression import file_and_class

ALL_SHARDS = (
    "all shards: unite the shards' records with bench merge, give them to each shard and repeat "
    "its command"
)
MAX_STARTS = 3  # of a worker that is killed before it is ready, as where memory is short


@dataclass(frozen=True)
class Failure:
    """A cell without a result, and why."""

    task: Task
    reason: str


def run_plan(
    plan: Plan, options: Options, jobs: int = 1, per_device: bool = False
) -> Iterator[tuple[str, bool]]:
    """Run the cells of a plan, and the cells that their records decide on.

    Yield each line to print, and whether it is bad news.

    Trials choose what is run after them, so there is another round until a round has nothing new.
    """
    claims.remove_dead_claims(options.results / "claims")
    failures, tried = list[Failure](), set[tuple[str, int]]()
    before = done_cells(plan.tasks(), options.results)
    with closing(Sweep(options, jobs, per_device)) as sweep:
        while tasks := [task for task in to_run(plan.tasks()) if task.key not in tried]:
            if not tried:
                check_writable(options.results)
            tried |= {task.key for task in tasks}
            failures += sweep.run(tasks)
    work, reported = plan.tasks(), {failure.task.key for failure in failures}
    failures += [
        Failure(task, "diverged in an earlier run")
        for task in work
        if task.state == "diverged" and task.key not in reported
    ]
    yield from ((line, True) for line in failure_lines(failures))
    after = done_cells(work, options.results)
    edited = len({key for key, _ in after - before} & {key for key, _ in before})
    missing = len(work) - len(after)
    without = f", {missing} without a result" if missing else ""
    counts = f"{len(after & before)} done before, {len(after - before)} now"
    counts += f" ({edited} on data that were edited since)" * bool(edited)
    yield f"{len(work)} cell{plural(len(work))}: {counts}{without}", missing > 0
    if plan.part:
        later = len(plan.later_tasks())
        waiting = f"; {later} later cells wait for trials of {ALL_SHARDS}" * bool(later)
        yield f"{plan.part}: {len(work)} of {len(plan.all_tasks())} cells{waiting}", False


def done_cells(work: Iterable[Task], results: Path) -> set[tuple[tuple[str, int], frozenset[str]]]:
    """Return the keys of finished tasks, of a user's own files with the data that were read."""

    def read_as(task: Task) -> frozenset[str]:
        own = ":" in task.experiment.dataset
        found = task.experiment.finished(results, task.seed) if own else ()
        return frozenset(record["data_hash"] for record in found)

    return {(task.key, read_as(task)) for task in work if task.state == "done"}


def to_run(work: Sequence[Task]) -> list[Task]:
    """Return the unfinished tasks, and finished tasks on a user's own file.

    Only its reading shows whether it is the same file.
    """
    done = [task for task in work if task.state == "done"]
    own = [task for task in done if ":" in task.experiment.dataset]
    return in_order(unfinished_tasks(work), {task.experiment.key for task in done}) + own


def in_order(work: Sequence[Task], begun: Container[str] = ()) -> list[Task]:
    """Return tasks with a seed of each experiment first, and a user's own losses before others.

    Those of one own loss stand together, as each has a process of its own; then those of one data
    set, of which a process keeps the last that it read.

    Args:
        begun: keys of the experiments of which a seed is done.
    """
    first, company, sets = dict[str, int](), dict[tuple[str, ...], int](), dict[str, int]()
    for task in work:
        first.setdefault(task.experiment.key, task.seed)
        company.setdefault(own_code(task), len(company))
        sets.setdefault(data_of(task), len(sets))

    def place(task: Task) -> tuple[bool, bool, int, int]:
        own, key = own_code(task), task.experiment.key
        later = key in begun or task.seed != first[key]
        return later, not own, company[own], sets[data_of(task)]

    return sorted(work, key=place)


def data_of(task: Task) -> str:
    return task.experiment.scored[0].dataset


def own_code(task: Task) -> tuple[str, ...]:
    """Return the loss and the data of a task that are code from outside this package.

    One process runs no two of them: what it leaves in torch would change the others' numbers.
    """
    loss, data = task.experiment.loss, (work.dataset for work in task.experiment.scored)
    return (*[loss.name] * bool(loss.code), *filter(file_and_class, data))


@dataclass(frozen=True, eq=False)
class Waiting:
    """A task that waits for a worker.

    Args:
        group: of its neighbours on one data set, which one worker reads for all of them.
        claimed: whether another sweep's claim is waited for.
    """

    task: Task
    group: int
    claimed: bool = False


class Sweep:
    """Runs tasks, in one round after another; of failures it makes lists."""

    def __init__(self, options: Options, jobs: int, per_device: bool = False) -> None:
        self.options = options
        self.all_slots = slots(options.device, jobs, per_device, options.devices)
        self.ranks: Worker | None = None  # of torchrun, here but once: they stay for all rounds
        self.refused = dict[str, str]()  # what is known to be impossible, by its scope
        self.workers: list[Worker] = []
        self.lock = threading.Lock()
        self.stopped = False
        self.unwritten = ""  # why the disk did not take a record

    def begin(self, tasks: Iterable[Task]) -> None:
        parts = (some for _, some in groupby(tasks, lambda task: (own_code(task), data_of(task))))
        self.waiting = [Waiting(task, k) for k, some in enumerate(parts) for task in some]
        self.taken = set[int]()  # groups of which a worker has had a task
        self.slots: list[str] = self.all_slots
        self.failures: list[Failure] = []
        self.short: list[Task] = []  # of memory, beside others

    def run(self, tasks: Iterable[Task]) -> list[Failure]:
        """Run everything; interrupted, the workers are asked to write their checkpoints and end.

        Where the disk does not take a record, cells in work are finished and no other begun.
        """
        self.begin(tasks)
        self.serve_all()
        if self.short:
            log_line(f"cells out of memory: {len(self.short)}, once more, each alone on its device")
            self.slots = list(dict.fromkeys(self.slots))
            self.waiting += [Waiting(task, k) for k, task in enumerate(self.short)]
            self.serve_all()
        if self.unwritten:
            raise UserError(f"stopped: {self.unwritten}")
        return self.failures

    def serve_all(self) -> None:
        total = len(self.waiting)
        slots = self.slots[:total]
        with Progress(total, "sweep") as progress, ThreadPoolExecutor(len(slots) or 1) as threads:
            serving = [threads.submit(self.serve, name, progress) for name in slots]
            try:
                while serving:
                    done, _ = wait(serving, SECONDS_BETWEEN_LINES, FIRST_EXCEPTION)
                    for one in done:
                        one.result()
                        serving.remove(one)
                    with self.lock:
                        progress.line(self.outlook())
            except BaseException:
                self.stop(subprocess.Popen.terminate)
                try:
                    wait(serving)
                except BaseException:  # asked twice
                    self.stop(subprocess.Popen.kill)
                raise

    def outlook(self) -> str:
        return f"{len(self.failures)} failed" if self.failures else ""

    def serve(self, device: str, progress: Progress) -> None:
        """Feed workers on a device, one after another, until nothing is left."""
        worker: Worker | None = None
        item: Waiting | None = None
        try:
            while item := self.next(item):
                task = item.task
                if (reply := self.known_refusal(task.experiment)) is None:
                    worker = self.hired(worker, device, own_code(task))
                    reply = self.noted(task, worker.do(task, item.claimed))
                if reply["status"] == "claimed":
                    self.waiting.append(replace(item, claimed=True))
                elif reply["status"] != "unwritten":
                    self.take(task, reply, progress)
        finally:
            self.release(worker)

    def take(self, task: Task, reply: Reply, progress: Progress) -> None:
        """Note what became of a task, and say it unless the worker was asked to end."""
        with self.lock:
            if self.stopped:
                return
            if "again" not in reply:  # the end names its seeds
                progress.write(outcome_line(task, reply))
            if ran_out(reply) and len(set(self.slots)) < len(self.slots):
                self.short.append(task)
            elif reply["status"] != "ok":
                self.failures.append(Failure(task, f"{reply['status']}: {reply['error']}"))
            progress.step(self.outlook())

    def next(self, last: Waiting | None = None) -> Waiting | None:
        """Return the next task, unless there is none or the sweep ends early.

        It is of the data that the worker has read with its last one, or of data that no other
        worker reads, where there are such.
        """

        def far(item: Waiting) -> tuple[bool, bool, bool]:
            other = last is None or item.group != last.group
            return item.claimed, other, other and item.group in self.taken

        with self.lock:
            if self.stopped or self.unwritten or not self.waiting:
                return None
            item = min(self.waiting, key=far)
            self.waiting.remove(item)
            self.taken.add(item.group)
            return item

    def known_refusal(self, experiment: Experiment) -> Reply | None:
        """Return the refusal of an earlier task, if it holds for this experiment too."""
        scopes = (scope(experiment, no_data) for no_data in (False, True))
        error = next((self.refused[name] for name in scopes if name in self.refused), None)
        return None if error is None else {"status": "refused", "error": error, "again": True}

    def noted(self, task: Task, reply: Reply) -> Reply:
        """Return the reply after noting what it means for other tasks.

        A refusal holds for other tasks too, unless a seed drew samples that do not do. A record
        that no disk took is printed, and no other task begins.
        """
        if "record" in reply:
            log_line(store.canonical(reply["record"]))
        if reply["status"] == "unwritten":
            self.unwritten = reply["error"]
        if reply["status"] == "refused" and not reply.get("seed_alone"):
            self.refused[scope(task.experiment, reply["no_data"])] = reply["error"]
        return reply

    def hired(self, worker: Worker | None, device: str, code: tuple[str, ...]) -> Worker:
        """Return the worker, or a new one if it has ended or has run other code from outside."""
        if worker and not (worker.alive and worker.code == code):
            self.release(worker)
            worker = None
        worker = worker or self.start(device)
        if worker.code not in (None, code):
            raise UserError(f"the ranks have run other losses than {' '.join(code)}: {GO_ON}")
        worker.code = code
        return worker

    def start(self, device: str) -> Worker:
        """A worker on the device, which a stop will reach."""
        if self.ranks:
            if self.ranks.alive:
                return self.ranks
            raise UserError(f"the ranks have ended with the last cell: {GO_ON}")
        for _ in range(MAX_STARTS):
            with self.lock:
                if self.stopped:
                    raise UserError("stopped")
                new = Worker(replace(self.options, device=device), len(self.slots))
                self.workers.append(new)
            if new.is_ready():
                self.ranks = new if launched() else None
                return new
            said = new.last_words()
            new.end()
            # it ended by itself, and so would the next one
            if new.process.returncode >= 0 or launched():
                break
        raise UserError(f"no worker process can be started: {said}")

    def release(self, worker: Worker | None) -> None:
        """Let a worker end, unless no other could take its place."""
        if worker and worker is not self.ranks:
            worker.end()

    def close(self) -> None:
        """Let the ranks of torchrun end, if there are any."""
        if self.ranks:
            self.ranks.end()

    def stop(self, how: Callable[["subprocess.Popen[str]"], None]) -> None:
        with self.lock:
            self.stopped = True
            for worker in self.workers:
                how(worker.process)


def outcome_line(task: Task, reply: Reply) -> str:
    took = f" in {duration(reply['seconds'])}" if reply["status"] == "ok" else ""
    why = f": {reply['error']}" if reply.get("error") else ""
    return f"{task.label}, seed {task.seed}: {reply['status']}{took}{why}"


def scope(experiment: Experiment, no_data: bool) -> str:
    """Return the scope of a refusal: all seeds of a dataset with a recipe, or of an experiment."""
    if not no_data:
        return experiment.key
    recipe = experiment.full_recipe.model_dump(mode="json")
    return store.canonical([experiment.domain, experiment.dataset, recipe])


def failure_lines(failures: Sequence[Failure]) -> Iterator[str]:
    seeds = grouped(((one.task.label, one.reason), one.task.seed) for one in failures)
    for (label, reason), some in seeds.items():
        yield f"{label}, seed{plural(len(some))} {', '.join(map(str, sorted(some)))}: {reason}"


def log_line(line: str) -> None:
    """A line of the log, above the bar if there is one."""
    with suppress(OSError):
        tqdm.write(printable(line), file=sys.stderr)
