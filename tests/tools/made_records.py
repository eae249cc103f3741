"""Records of graphs that no training made, for what only reads them."""

from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.store import (
    FINAL_STATUSES,
    SCHEMA,
    Record,
    key,
    publish_record,
)
from contrastbench.benchmarks.records.store import record_path as path_of
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses.spec import LossSpec

ENVIRONMENT = {
    "commit": "0" * 40,
    "device": "a CPU",
    "platform": "Linux",
    "python": "3.11",
    "threads": 1,
    "versions": {"torch": "2.15"},
}


def made(results: Path, work: Experiment, seed: int, **change: Any) -> Path:
    """The file of an ok record of an experiment.

    Any field of its cell or of its outcome may be changed.
    """
    record = record_of(work, seed, **change)
    suffix = "" if record["status"] in FINAL_STATUSES else f".{record['status']}-1"
    path = path_of(results, record, suffix)
    publish_record(record, path)
    return path


def record_of(work: Experiment, seed: int, **change: Any) -> Record:
    outcome = {
        "status": "ok",
        "metrics": {"accuracy": 50.0},
        "main": "accuracy",
        "details": {},
        "seconds": 2.0,
        "peak_memory_mib": 100.0,
        "environment": ENVIRONMENT,
    }
    record = {"schema": SCHEMA, **Cell(work, seed, "0" * 64, {}).identity, **outcome, **change}
    if record["status"] != "ok":
        del record["metrics"], record["main"]
    return {**record, "key": key(record)}


def add(results: Path, seed: int, accuracy: float, loss: str = "infonce", **change: Any) -> Path:
    """A record of graphs; `dataset`, `params`, `recipe` and `details` may be given in part."""
    params, recipe = change.pop("params", {}), change.pop("recipe", {})
    work = Experiment("graph", change.pop("dataset", "MUTAG"), LossSpec(loss, params), recipe)
    details = {
        "folds": [accuracy, accuracy],
        "loss_by_epoch": [3.0, 2.0, 1.0],
        **change.pop("details", {}),
    }
    outcome = {"metrics": {"accuracy": accuracy}, "details": details, **change}
    return made(results, work, seed, **outcome)


def small_table(**about: Any) -> Table:
    """A table of these columns and rows, on graphs unless told otherwise."""
    names = {"name": "small", "title": "t", "source": "s", "decimals": 1}
    return Table(**{**names, "domain": "graph", "metric": "accuracy", **about})
