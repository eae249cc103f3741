"""Classes of cells by the resources that they need, and cells that outgrew theirs. Brings no torch.

A job of a class that was too small for a cell leaves an empty file, named by the cell, the class
and the reason. The cell is in the next class from then on. Whatever the class, the number is the
same, so no record names it.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.tables.resources import ResourceClasses, Resources
from contrastbench.errors import UserError, unknown

OUTGROWN_FOLDER = "outgrown"
OUTGROWN_SHARE = 2 / 3  # of a class's hours: a cell that was in work for so long has outgrown them


@dataclass(frozen=True)
class ByResources:
    """The classes of a plan, of which a job runs some."""

    classes: ResourceClasses
    results: Path
    chosen: frozenset[str] = frozenset()  # of a job; none: it runs all cells

    @cached_property
    def costs(self) -> Costs:
        """Return the forecasts, which stay as they are while a job runs."""
        return Costs(self.results)

    @property
    def devices(self) -> int:
        """Return the number of devices of each training in the chosen classes; 1 without any.

        Raises:
            UserError: they differ in it.
        """
        found = {name: self.classes[name].ranks for name in sorted(self.chosen)}
        if len(set(found.values())) > 1:
            said = " and ".join(f"class {name} has {count}" for name, count in found.items())
            raise UserError(f"{said} devices: choose one --only class=, or give --devices N")
        return next(iter(found.values()), 1)

    def has(self, task: Task) -> bool:
        """Return whether the task is in a chosen class."""
        return not self.chosen or self.of(task) in self.chosen

    def of(self, task: Task) -> str:
        """Return the name of a task's class: the last that fits where it outgrew them all.

        Raises:
            UserError: no class has its domain and recipe.
        """
        return (self.left(task) or self.fitting(task)[-1:])[0]

    def fitting(self, task: Task) -> list[str]:
        """Return the classes that have a task's domain and recipe, and enough hours if any has."""
        names = [name for name, one in self.classes.items() if one.takes(task.experiment)]
        if not names:
            raise UserError(
                f"no class of resources has {task.label}: add one without domain and recipe"
            )
        seconds = self.costs.of(task.experiment)
        enough = [name for name in names if has_time(self.classes[name], seconds)]
        return enough or names[-1:]

    def left(self, task: Task) -> list[str]:
        """Return the fitting classes behind the last one that a task outgrew."""
        names, gone = self.fitting(task), self.outgrown(task)
        last = max((i for i, name in enumerate(names) if name in gone), default=-1)
        return names[last + 1 :]

    def outgrown(self, task: Task) -> dict[str, str]:
        """Return the classes that were too small for a task, each with the reason."""
        found = (self.results / OUTGROWN_FOLDER).glob(f"{task.name}.*")
        return dict(path.name.removeprefix(f"{task.name}.").split(".") for path in found)

    def outgrow(self, task: Task, why: str) -> str:
        """Note that a task's class is too small, and return what becomes of it."""
        name = self.of(task)
        with suppress(OSError):  # a full disk
            (self.results / OUTGROWN_FOLDER).mkdir(parents=True, exist_ok=True)
            (self.results / OUTGROWN_FOLDER / f"{task.name}.{name}.{why}").touch()
        after = self.left(task)
        if after:
            return f"class {name} has too little {why}, so it is in class {after[0]} now"
        return f"class {name} has too little {why}: add a larger class behind it"

    def outgrows_time(self, task: Task, seconds: float) -> bool:
        """Return whether a task that was interrupted needs the longer time of a next class."""
        hours = self.classes[self.of(task)].hours
        return (
            len(self.left(task)) > 1
            and bool(hours)
            and seconds > OUTGROWN_SHARE * 3600 * (hours or 0)
        )


NO_JOB_CLASSES = ByResources({}, Path())


def has_time(one: Resources, seconds: float | None) -> bool:
    """Return whether a class has enough time for a cell of so many seconds, as far as is known."""
    return one.hours is None or seconds is None or seconds <= 3600 * one.hours


def select(classes: ResourceClasses, names: list[str], results: Path) -> ByResources:
    """Return the classes of a plan, of which a job runs those with these names.

    Raises:
        UserError: there is no such class.
    """
    for name in names:
        if not classes:
            raise UserError(f"--only class={name}: there are no classes: give --resources FILE")
        if name not in classes:
            raise unknown("class", name, classes)
    return ByResources(classes, results, frozenset(names))
