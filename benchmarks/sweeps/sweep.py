"""Run many cells in worker processes that take one cell at a time.

A worker imports torch once and runs many cells. What fails in a cell is caught there; a worker that
dies takes one cell with it, and the next worker gets the others. Records are published by the
workers alone, so this process may be killed at any moment: its workers notice, and the next sweep
goes on. A cell that ran out of memory beside others is tried once more alone on its device.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from statistics import fmean

from tqdm import tqdm

from contrastbench.benchmarks.records import nested, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.writable import check_writable
from contrastbench.benchmarks.running.launch import launched
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps import claims
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.costs import Costs, duration
from contrastbench.benchmarks.sweeps.plan import Plan, unfinished_tasks
from contrastbench.benchmarks.sweeps.process import Reply, Worker, ran_out, torchrun_worker
from contrastbench.benchmarks.sweeps.shard import WHOLE_SWEEP
from contrastbench.benchmarks.sweeps.slots import SharedDevice, slots
from contrastbench.domains.progress import SECONDS_BETWEEN_LINES, Progress
from contrastbench.errors import UserError, printable

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
    plan: Plan,
    options: Options,
    jobs: int = 1,
    per_device: bool = False,
    refused: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, bool]]:
    """Run the cells of a plan, and the cells that their records decide on.

    Yield each line to print, and whether it is bad news. Refused cells are not tried again.

    Trials choose what is run after them, so there is another round until a round has nothing new.
    """
    if old := plan.outdated():
        raise UserError(nested.advice(old))
    store.remove_leftovers(options.results)
    claims.remove_dead_claims(options.results / "claims")
    if plan.shard == WHOLE_SWEEP and (weak := claims.weakness(options.results / "claims")):
        log_line(weak)
    costs, failures = Costs(options.results), list[Failure]()
    tried, made = set[tuple[str, int]](), set[tuple[str, int]]()
    before, codes = done_keys(plan.tasks()), dict[str, str]()
    while tasks := [task for task in unedited(plan, codes) if task.key not in tried]:
        if not tried:
            check_writable(options.results)
        tried |= {task.key for task in tasks}
        sweep = Sweep(tasks, options, jobs, costs, per_device, refused=refused)
        failures += sweep.run()
        made |= sweep.made
    work = plan.tasks()
    failures += diverged(work, {failure.task.key for failure in failures})
    yield from ((line, True) for line in failure_lines(failures))
    after = done_keys(work)
    missing = len(work) - len(after)
    without = f", {missing} without a result" if missing else ""
    new, others = (after - before) & made, after - before - made
    counts = f"{len(after & before)} done before, {len(new)} now"
    counts += f", {len(others)} by other sweeps" * bool(others)
    yield f"{len(work)} cells: {counts}{without}", missing > 0
    if plan.part:
        yield of_part(plan, len(work)), False


def unedited(plan: Plan, codes: dict[str, str]) -> Iterator[Task]:
    """Yield the tasks to run whose loss has the code that it had in the first round.

    Args:
        plan: of the sweep.
        codes: the code of each loss that was met; gets those that are met now.
    """
    for task in to_run(plan.tasks()):
        loss = task.experiment.loss
        if codes.setdefault(loss.name, loss.code) == loss.code:
            yield task


def of_part(plan: Plan, cells: int) -> str:
    """Return a line on the cells of a part and of all, and how the sweep goes on after them."""
    waiting = f"; {plan.later()} later cells wait for trials of {ALL_SHARDS}" * bool(plan.later())
    return f"{plan.part}: {cells} of {len(plan.all_tasks())} cells{waiting}"


def done_keys(work: Iterable[Task]) -> set[tuple[str, int]]:
    """The keys of tasks that are done."""
    return {task.key for task in work if task.state == "done"}


def diverged(work: Sequence[Task], reported: set[tuple[str, int]]) -> list[Failure]:
    """Cells that an earlier run has seen diverge."""
    return [
        Failure(task, "diverged in an earlier run")
        for task in work
        if task.state == "diverged" and task.key not in reported
    ]


def to_run(work: Sequence[Task]) -> list[Task]:
    """Return the unfinished tasks, and finished tasks on a user's own file.

    Only its reading shows whether it is the same file.
    """
    own = [task for task in work if task.state == "done" and ":" in task.experiment.dataset]
    return in_order(unfinished_tasks(work)) + own


def in_order(work: Sequence[Task]) -> list[Task]:
    """Return tasks with a seed of each experiment first, and a user's own losses before others."""
    first: dict[str, int] = {}
    for task in work:
        first.setdefault(task.experiment.key, task.seed)

    def place(task: Task) -> tuple[bool, bool]:
        return task.seed != first[task.experiment.key], not task.experiment.loss.code

    return sorted(work, key=place)


class Sweep:
    """Runs tasks; of failures it makes a list.

    Args:
        tasks: what is run.
        options: how.
        jobs: worker processes, in all or on each device.
        costs: what the rest will take, which it learns from.
        per_device: the jobs are on each device.
        rehearsal: first steps are tried, and nothing is recorded.
        refused: what is known to be impossible, by its scope.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        options: Options,
        jobs: int,
        costs: Costs,
        per_device: bool = False,
        rehearsal: bool = False,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self.options, self.costs, self.rehearsal = options, costs, rehearsal
        self.slots = slots(options.device, jobs, per_device, options.devices)
        self.devices = {name: SharedDevice(name, self.slots.count(name)) for name in self.slots}
        self.waiting = deque(
            (task, False) for task in tasks
        )  # and whether another sweep's claim is waited for
        self.total = len(self.waiting)
        self.failures: list[Failure] = []
        self.took, self.expected = 0.0, 0.0  # seconds of cells that were run here
        self.made = set[tuple[str, int]]()  # the keys of tasks that were run here
        self.others = 0  # tasks that another sweep has finished meanwhile
        self.refused = dict(refused or {})
        self.peaks: list[float] = []  # MiB of a cell's memory
        self.in_turn: set[str] = set()  # domains whose trainings take turns
        self.workers: list[Worker] = []
        self.lock = threading.Lock()
        self.reports: SimpleQueue[tuple[Task, Reply] | BaseException | None] = SimpleQueue()
        self.stopped = False
        self.unwritten = ""  # why the disk did not take a record
        self.seconds_left: float | None = None  # as of the last look at all waiting tasks
        self.next_look = 0.0

    def run(self) -> list[Failure]:
        """Run everything; interrupted, the workers are asked to write their checkpoints and end.

        Raises:
            UserError: the disk does not take a record. Cells in work were finished, no other begun.
        """
        threads = [
            threading.Thread(target=self.serve, args=(self.devices[name],), name=f"sweep-{i}")
            for i, name in enumerate(self.slots[: self.total])
        ]
        for thread in threads:
            thread.start()
        try:
            self.watch(len(threads))
            join_threads(threads)
        except BaseException:
            self.stop(subprocess.Popen.terminate)
            try:
                join_threads(threads)
            except BaseException:  # asked twice
                self.stop(subprocess.Popen.kill)
            raise
        if self.unwritten:
            raise UserError(f"stopped: {self.unwritten}")
        return self.failures

    def watch(self, serving: int) -> None:
        """Take reports until the last thread has ended."""
        with Progress(self.total, "check" if self.rehearsal else "sweep") as progress:
            while serving:
                try:
                    report = self.reports.get(
                        timeout=SECONDS_BETWEEN_LINES if progress.bar.disable else 1
                    )
                except Empty:
                    progress.show(self.outlook())
                    continue
                if isinstance(report, BaseException):
                    raise report
                if report is None:
                    serving -= 1
                elif report[1]["status"] != "unwritten":
                    self.take(*report)
                    progress.write("check: " * self.rehearsal + outcome_line(*report))
                    progress.step(self.outlook())

    def take(self, task: Task, reply: Reply) -> None:
        """Note what became of a task."""
        if reply["status"] == "ok" and self.rehearsal:
            self.peaks.append(reply["peak_memory_mib"] or 0.0)
        elif reply["status"] == "ok":
            if reply["made"]:
                self.note_pace(task, reply["seconds"])
            self.costs.learn(task.experiment, reply["seconds"])
            self.made |= {task.key} if reply["made"] else set()
            self.others += not reply["made"] and task.state != "done"
            if reply.get("in_turn"):
                self.in_turn.add(task.experiment.domain)
        else:
            self.failures.append(Failure(task, f"{reply['status']}: {reply['error']}"))

    def note_pace(self, task: Task, seconds: float) -> None:
        """Note what a cell took, where records tell what it takes elsewhere."""
        if expected := self.costs.of(task.experiment):
            self.took, self.expected = self.took + seconds, self.expected + expected

    def outlook(self) -> str:
        """Say how long the rest will take, as far as records tell.

        A look at many waiting tasks takes time, so looks take a twentieth of the time at most.
        """
        begun = time.monotonic()
        if begun >= self.next_look:
            self.seconds_left = self.forecast()
            self.next_look = begun + 20 * (time.monotonic() - begun)
        seconds = self.seconds_left
        left = [] if seconds is None else [f"about {duration(seconds)} left"]
        failed = [f"{len(self.failures)} failed"] if self.failures else []
        others = [f"{self.others} by other sweeps"] if self.others else []
        return ", ".join(left + failed + others)

    def forecast(self) -> float | None:
        """Return the seconds of all waiting tasks, or None where no record tells of any.

        It goes at the pace of the cells so far. What records say nothing of counts as the mean.
        Where trainings take turns, jobs spare no time.
        """
        pace = self.took / self.expected if self.expected else 1.0
        waiting = [task.experiment for task, _ in list(self.waiting)]
        known = [
            seconds / (1 if one.domain in self.in_turn else len(self.slots))
            for one in waiting
            if (seconds := self.costs.of(one)) is not None
        ]
        return pace * fmean(known) * len(waiting) if known else None

    def serve(self, device: SharedDevice) -> None:
        """Feed a slot until nothing is left."""
        slot = Slot(device, self.start)
        try:
            while (item := self.next()) is not None:
                task, wait = item
                reply = self.known_refusal(task.experiment) or self.noted(task, slot.do(task, wait))
                if reply["status"] == "claimed":
                    # put back here, not by who reads the reports: this thread may end before that
                    self.waiting.append((task, True))
                else:
                    self.reports.put((task, reply))
            self.reports.put(None)
        except BaseException as error:
            self.reports.put(error)
        finally:
            slot.clear()

    def next(self) -> tuple[Task, bool] | None:
        """Return the next task, unless there is none or the sweep ends early."""
        try:
            return None if self.stopped or self.unwritten else self.waiting.popleft()
        except IndexError:
            return None

    def known_refusal(self, experiment: Experiment) -> Reply | None:
        """Return the refusal of an earlier task, if it holds for this experiment too."""
        scopes = (scope(experiment, no_data) for no_data in (False, True))
        error = next((self.refused[name] for name in scopes if name in self.refused), None)
        return None if error is None else {"status": "refused", "no_data": False, "error": error}

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

    def start(self, device: str) -> Worker:
        """A worker on the device, which a stop will reach."""
        for _ in range(MAX_STARTS):
            with self.lock:
                if self.stopped:
                    raise UserError("stopped")
                options = replace(self.options, device=device)
                worker = self.worker(options)
                self.workers.append(worker)
            if worker.is_ready():
                return worker
            said = worker.last_words()
            worker.end()
            if worker.process.returncode >= 0:  # it ended by itself, and so would the next one
                break
        raise UserError(f"no worker process can be started: {said}")

    def worker(self, options: Options) -> Worker:
        """Start a worker, or return the one that torchrun's ranks have."""
        if launched():
            return torchrun_worker(options)
        return Worker(options, len(self.slots), self.rehearsal)

    def stop(self, how: Callable[["subprocess.Popen[str]"], None]) -> None:
        """End all workers, one way or the other."""
        with self.lock:
            self.stopped = True
            for worker in self.workers:
                how(worker.process)


def outcome_line(task: Task, reply: Reply) -> str:
    """A line of the log."""
    took = made_by(task, reply) if reply["status"] == "ok" else ""
    why = f": {reply['error']}" if reply.get("error") else ""
    return f"{task_label(task)}: {reply['status']}{took}{why}"


def made_by(task: Task, reply: Reply) -> str:
    """Return how long a cell took, or that another run has made its record."""
    if reply.get("made", True):  # a check makes none
        return f" in {duration(reply['seconds'])}"
    return ", done before" if task.state == "done" else ", by another sweep"


def task_label(task: Task) -> str:
    """Return a task's name for people."""
    return f"{task.label}, seed {task.seed}"


def join_threads(threads: Iterable[threading.Thread]) -> None:
    """Wait for all of them."""
    for thread in threads:
        thread.join()


def scope(experiment: Experiment, no_data: bool) -> str:
    """Return the scope of a refusal: all seeds of a dataset with a recipe, or of an experiment."""
    recipe = experiment.full_recipe.model_dump(mode="json")
    return (
        store.canonical([experiment.domain, experiment.dataset, recipe])
        if no_data
        else experiment.key
    )


RECIPE_SETTING = re.compile(r"--recipe '?(\w+)=(\[[^]]*\]|[^\s;,']+)")  # as an error names it


def failure_lines(failures: Sequence[Failure]) -> Iterator[str]:
    """A line for each experiment and reason, with its seeds; then settings that would help."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for failure in failures:
        seeds.setdefault((failure.task.label, failure.reason), []).append(failure.task.seed)
    for (label, reason), some in seeds.items():
        yield f"{label}, seed{'s' * (len(some) > 1)} {', '.join(map(str, sorted(some)))}: {reason}"
    yield from suggested_settings(failures)


def suggested_settings(failures: Iterable[Failure]) -> Iterator[str]:
    """Yield a line with the settings that errors name, as a sweep file has them."""
    found: dict[str, dict[str, str]] = {}
    for failure in failures:
        for key, value in RECIPE_SETTING.findall(failure.reason):
            found.setdefault(failure.task.experiment.dataset, {})[key] = value
    if found:
        names = {name: json.dumps(name) if ":" in name else name for name in found}
        parts = [
            f"{names[name]}: {{{', '.join(f'{k}: {v}' for k, v in values.items())}}}"
            for name, values in found.items()
        ]
        yield f"in a sweep file: datasets: [{', '.join(parts)}]"


class Slot:
    """A place for one worker on a device: one process after another."""

    def __init__(self, device: SharedDevice, start: Callable[[str], Worker]) -> None:
        self.device, self.start = device, start
        self.worker: Worker | None = None

    def do(self, task: Task, wait: bool) -> Reply:
        """Run a task; after running out of shared memory it is tried once more, alone."""
        if self.device.wanted or not (self.worker and self.worker.alive):
            self.clear()
        reply = (self.worker or self.enter()).do(task, wait)
        return self.alone(task, wait) if ran_out(reply) and self.device.slots > 1 else reply

    def alone(self, task: Task, wait: bool) -> Reply:
        """Run a task that has the device to itself."""
        self.clear()
        with self.device.alone():
            worker = self.start(self.device.name)
            log_line(f"{task_label(task)}: out of memory, once more, alone on {self.device.name}")
            try:
                return worker.do(task, wait)
            finally:
                worker.end()

    def enter(self) -> Worker:
        """A new worker, beside those that are there."""
        self.device.enter()
        try:
            self.worker = self.start(self.device.name)
        except BaseException:
            self.device.leave()
            raise
        return self.worker

    def clear(self) -> None:
        """Let the worker end, if there is one."""
        if self.worker:
            self.worker.end()
            self.worker = None
            self.device.leave()


def log_line(line: str) -> None:
    """A line of the log, above the bar if there is one."""
    with suppress(OSError):
        tqdm.write(printable(line), file=sys.stderr)
