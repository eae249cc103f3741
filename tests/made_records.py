"""Records of graphs that no training made, for what only reads them."""

from pathlib import Path
from typing import Any

from contrastbench.benchmarks.experiments import Experiment
from contrastbench.benchmarks.records import SCHEMA, Cell, publish

ENVIRONMENT = {
    "commit": "0" * 40,
    "device": "a CPU",
    "platform": "Linux",
    "python": "3.11",
    "threads": 1,
    "versions": {"torch": "2.15"},
}


def add(results: Path, seed: int, accuracy: float, loss: str = "infonce", **change: Any) -> Path:
    """A record of graphs; keys of the cell may be changed, `params` over defaults and `details` too."""
    work = Experiment("graph", change.pop("dataset", "MUTAG"), loss, change.pop("params", {}), change.pop("recipe", {}))
    details = {"folds": [accuracy, accuracy], "loss_by_epoch": [3.0, 2.0, 1.0], **change.pop("details", {})}
    status = change.pop("status", "ok")
    fields = {
        "domain": work.domain,
        "dataset": work.dataset,
        "loss": loss,
        "loss_code": "",
        "params": work.full_params,
        "recipe": work.full_recipe.model_dump(mode="json"),
        "protocol": work.full_recipe.protocol,
        "data_hash": "0" * 64,
        "seed": seed,
        **change,
    }
    cell = Cell(**fields)
    outcome: dict[str, Any] = {"status": status, "details": details, "environment": ENVIRONMENT}
    if status == "ok":
        outcome |= {"metrics": {"accuracy": accuracy}, "main": "accuracy", "seconds": 2.0, "peak_memory_mib": 100.0}
    path = cell.path(results, "" if status in ("ok", "diverged") else f".{status}-1")
    publish({"schema": SCHEMA, **fields, "key": cell.key, **outcome}, path)
    return path
