"""Find the records that a suite asks of a loss: its whole budget, no more and no less."""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.sweeps.plan import Plan, make_plan
from contrastbench.losses.spec import LossSpec


def suite_plan(suite: str, loss: LossSpec, results: Path, quick: bool = False) -> Plan:
    """Return the cells that a suite, or its quick part, asks of a loss."""
    return make_plan(suite, [], None, False, None, results, losses=[loss], quick=quick)


def finished_records(plan: Plan) -> Iterator[tuple[Experiment, Record]]:
    """Yield each finished cell of a plan with its record."""
    for task in plan.tasks():
        record = seed_record(task.experiment, task.seed, plan.results)
        if record is not None:
            yield task.experiment, record


def seed_record(experiment: Experiment, seed: int, results: Path) -> Record | None:
    """Return the record of a seed: an ok one on the preferred data, else one that diverged."""
    by_data = experiment.ok_by_data(results).values()
    ok = next((records[seed] for records in by_data if seed in records), None)
    diverged = (one for one in experiment.finished(results) if one["seed"] == seed)
    return ok or next(diverged, None)


def missing_count(plan: Plan) -> tuple[int, int]:
    """Return how many cells have no result, of how many."""
    states, later = [task.state for task in plan.tasks()], plan.later()
    return sum(one in ("missing", "failed") for one in states) + later, len(states) + later


def record_name(record: Record) -> str:
    """Return the name of a record's file within a folder of results."""
    return store.record_path(Path(), record).as_posix()
