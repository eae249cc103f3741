"""Forecast cells from their first steps on this machine, for `bench plan --measure`.

Like cells (see `costs`) are of one kind. Of each kind a process of its own takes the first training
steps of one cell, see `running.first_steps`. Scoring is left out, and nothing is recorded. Brings
no torch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.costs import cost_key, duration, experiment_fields
from contrastbench.domains.progress import Progress

if TYPE_CHECKING:
    from contrastbench.benchmarks.sweeps.process import Reply

NOTE = (
    "measured: three training steps of one cell of each kind, times its number of steps; scoring "
    "is left out, the memory is that of one process, and nothing is recorded"
)


@dataclass(frozen=True)
class Measured:
    """What was measured, or why it could not be, by the key of each experiment."""

    replies: Mapping[str, "Reply"] = field(default_factory=dict)
    wrong: Sequence[str] = ()  # a line for each kind that could not be measured

    def forecast(self, work: Sequence[Task]) -> str:
        """Return the time of one process for the trainings of these cells, and its memory."""
        if not self.replies:
            return ""
        found = [self.replies.get(task.experiment.key, {}) for task in work]
        ok = [reply for reply in found if reply.get("status") == "ok"]
        without = len(work) - len(ok)
        total = duration(sum(reply["seconds"] for reply in ok))
        memory = max((reply["peak_memory_mib"] or 0.0 for reply in ok), default=0.0)
        parts = [f"measured about {total}"] if ok else []
        parts += [f"{memory:.0f} MiB"] if memory else []
        parts += [f"no training measured for {without}"] if without else []
        return "".join(f", {part}" for part in parts)

    def lines(self) -> Iterator[str]:
        """Yield a line for each kind that could not be measured, and what the numbers are."""
        if self.replies:
            yield from self.wrong
            yield NOTE


NOT_MEASURED = Measured()


def measure(work: Sequence[Task], options: Options) -> Measured:
    """Measure one cell of each kind that has a training."""
    kinds: dict[str, list[Task]] = {}
    for task in {task.experiment.key: task for task in work if is_trained(task)}.values():
        kinds.setdefault(cost_key(experiment_fields(task.experiment)), []).append(task)
    replies, wrong = dict[str, "Reply"](), dict[str, None]()
    with Progress(len(kinds), "measure") as progress:
        for alike in kinds.values():
            reply = ask(alike[0], options)
            replies |= dict.fromkeys((task.experiment.key for task in alike), reply)
            if reply["status"] != "ok":
                wrong[f"{of(alike[0])} is not measured: {reply['error']}"] = None
            progress.step(of(alike[0]))
    return Measured(replies, list(wrong))


def is_trained(task: Task) -> bool:
    """Return whether the cell has training steps."""
    return task.experiment.trained and task.experiment.full_recipe.epochs > 0


def of(task: Task) -> str:
    """Return the data of a task for people."""
    return f"{task.experiment.domain} {task.experiment.dataset}"


def ask(task: Task, options: Options) -> "Reply":
    """Return what a new process says of the first steps of a cell."""
    from contrastbench.benchmarks.sweeps.process import Worker  # brings numpy

    worker = Worker(options, 1, "measure")
    try:
        reply = worker.answer()
        return worker.do(task, wait=False) if reply["status"] == "ready" else reply
    finally:
        worker.end()
