"""The columns of a record in a data frame; `docs/records.md` says what each holds."""

from collections.abc import Iterable
from typing import Any

from contrastbench.benchmarks.records.store import Fields, Record

FIRST_COLUMNS = ("domain", "dataset", "loss", "seed", "status", "main", "score")
WIDE_COLUMNS = ("metrics", "params", "learned", "health", "recipe")  # one for each name
LAST_COLUMNS = (
    *("folds", "inner", "seconds", "peak_memory_mib", "device", "commit", "version", "protocol"),
    *("loss_code", "data_hash", "key", "error"),
)


def as_row(record: Record) -> dict[str, Any]:
    """Flatten a record into one row of columns."""
    metrics, environment = record.get("metrics", {}), record["environment"]
    details = record["details"]
    made = {
        "score": metrics.get(record.get("main", "")),
        "folds": details.get("folds"),
        "inner": details.get("inner"),
        "device": environment.get("device"),
        "commit": environment.get("commit"),
        "version": environment.get("versions", {}).get("contrastbench"),
        "error": details.get("error"),
    }
    own = {name: record.get(name) for name in (*FIRST_COLUMNS, *LAST_COLUMNS)}
    states: list[Fields] = [details.get("learned", {}), details.get("health", {})]
    groups = (metrics, record["params"], *states, record["recipe"])
    parts = dict(zip(WIDE_COLUMNS, groups, strict=True))
    flat = {f"{part}.{name}": v for part, some in parts.items() for name, v in some.items()}
    return {**own, **made, **flat}


def ordered_columns(names: Iterable[str]) -> list[str]:
    """Return all columns in their order; of those that records differ in, the given ones."""
    known = set(names)
    wide = [sorted(n for n in known if n.startswith(f"{part}.")) for part in WIDE_COLUMNS]
    return [*FIRST_COLUMNS, *(name for some in wide for name in some), *LAST_COLUMNS]
