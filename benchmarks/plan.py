"""What a table or a sweep asks for, what of it is done, and what the rest will cost. Brings no torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contrastbench.benchmarks.costs import Costs, duration
from contrastbench.benchmarks.experiments import Experiment, Failure, Task, survey
from contrastbench.benchmarks.tables import Table, experiment
from contrastbench.domains.recipes import TINY
from contrastbench.losses.errors import UserError, unknown


@dataclass(frozen=True)
class Place:
    """A place of a table that can be run."""

    row: str
    column: str
    experiment: Experiment

    def label(self, key: str) -> str:
        """What --only compares."""
        return str(getattr(self if key in ("row", "column") else self.experiment, key))


KEYS = ("row", "column", "domain", "dataset", "loss")


def places(table: Table, only: Sequence[str] = (), tiny: bool = False) -> list[Place]:
    """The table's places that can be run here; those that every KEY=VALUE wants, where there are any.

    Raises:
        UserError: what is wanted is not there.
    """
    everything = [
        Place(row.name, column, experiment(table, row, column))
        for row in table.rows
        for column, what in table.columns.items()
        if row.loss and what.dataset
    ]
    found = everything
    for key, values in wanted(only).items():
        known = {place.label(key) for place in everything}
        for value in values:
            if value not in known:
                raise unknown(f"{key} in {table.name}", value, known)
        found = [place for place in found if place.label(key) in values]
    if not found:
        reason = f"--only {' --only '.join(only)} together select nothing" if only else "it is quoted only"
        raise UserError(f"{table.name}: {reason}; bench plan {table.name} shows what can be run")
    return [replace(place, experiment=shrunk(place.experiment)) for place in found] if tiny else found


def wanted(only: Sequence[str]) -> dict[str, list[str]]:
    """Values by key; of several values of one key any will do.

    >>> wanted(["dataset=MUTAG", "dataset=DD", "loss=adnce"])
    {'dataset': ['MUTAG', 'DD'], 'loss': ['adnce']}
    """
    values: dict[str, list[str]] = {}
    for pair in only:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key or not value:
            raise UserError(f"--only {pair!r}: give KEY=VALUE, such as dataset=MUTAG")
        if key not in KEYS:
            raise unknown("--only", key, KEYS)
        values.setdefault(key, []).append(value)
    return values


def shrunk(work: Experiment) -> Experiment:
    """The same on a tiny subset."""
    return replace(work, recipe={**work.recipe, **TINY[work.domain]})


def tasks(found: Sequence[Place], seeds: Sequence[int], results: Path) -> list[Task]:
    """The cells behind places, each once, and what records say of them."""
    return list(survey(((place.experiment, seeds) for place in found), results))


def lines(work: Sequence[Task], costs: Costs) -> Iterator[str]:
    """A line for each experiment, and one for all."""
    by_experiment: dict[str, list[Task]] = {}
    for task in work:
        by_experiment.setdefault(task.experiment.key, []).append(task)
    width = max(len(some[0].experiment.label) for some in by_experiment.values())
    for some in by_experiment.values():
        yield f"{some[0].experiment.label:{width}}  {counts(some)}{forecast(some, costs)}"
    yield f"{'all':{width}}  {counts(work)}{forecast(work, costs)}"


def counts(work: Sequence[Task]) -> str:
    """How many are in which state."""
    states = [task.state for task in work]
    shown = [
        state for state in ("done", "diverged", "failed", "missing") if state in ("done", "missing") or state in states
    ]
    return ", ".join(f"{states.count(state)} {state}" for state in shown)


def forecast(work: Sequence[Task], costs: Costs) -> str:
    """Time of one process for what is not finished."""
    costly = [costs.of(task.experiment) for task in unfinished(work)]
    known = [cost for cost in costly if cost is not None]
    guessed = sum(not cost.same_dataset for cost in known)
    parts = [f"about {duration(sum(cost.seconds for cost in known))}"] if known else []
    parts += [f"{guessed} of them guessed"] if guessed else []
    parts += [f"{len(costly) - len(known)} of unknown cost"] if len(known) < len(costly) else []
    return "".join(f", {part}" for part in parts)


def unfinished(work: Sequence[Task]) -> list[Task]:
    """What a sweep would run: missing cells, and failed ones once more."""
    return [task for task in work if task.state in ("missing", "failed")]


def diverged(work: Sequence[Task]) -> list[Failure]:
    """What earlier sweeps have found to have no number."""
    return [
        Failure(task.experiment, task.seed, "diverged, as an earlier run has found")
        for task in work
        if task.state == "diverged"
    ]


def summary(work: Sequence[Task], failed: int) -> str:
    """The last line of a sweep."""
    before = sum(task.state == "done" for task in work)
    return f"{len(work)} cells: {before} done before, {len(work) - before - failed} now, {failed} without a result"
