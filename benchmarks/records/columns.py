"""The columns of a record in a data frame or a Parquet file, each with its meaning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contrastbench.benchmarks.records.store import Fields, Record

FIRST_COLUMNS = {
    "domain": "graph, image, sentence, tabular, or the name of a package's domain",
    "dataset": "data set that trained and scored the encoder",
    "loss": "registered name, or the name of your file, whose classes differ in `loss_code`; "
    "none: the encoder as it is",
    "seed": "seed of everything that is drawn; seeds from 1000 on chose parameters",
    "status": "ok, diverged, oom, failed or skipped",
    "main": "name of the metric that tables show",
    "score": "value of that metric, in percent",
}
WIDE_COLUMNS = {  # many columns each, one for each name
    "metrics": "a metric, in percent",
    "params": "a parameter of the loss, after defaults",
    "learned": "last value of a parameter that the loss itself learns",
    "health": "what the last batch's embeddings and the gradients look like",
    "recipe": "a setting of the training, after defaults",
}
LAST_COLUMNS = {
    "folds": "score of each fold, where the score is a mean over folds",
    "inner": "inner score of each fold, by which it chooses among settings",
    "seconds": "time of training and scoring",
    "peak_memory_mib": "largest memory, in MiB",
    "device": "device that trained",
    "commit": "commit of contrastbench that ran",
    "version": "version of contrastbench that ran",
    "protocol": "version of the domain's protocol; numbers of two protocols are never mixed",
    "loss_code": "sha256 of the code of a loss that is not registered, else empty",
    "data_hash": "sha256 of the content of the data",
    "key": "sha256 of all that determines the number besides the seed",
    "error": "why there is no number, where there is none",
}


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
    found: list[Fields] = [details.get("learned", {}), details.get("health", {})]
    groups = (metrics, record["params"], *found, record["recipe"])
    parts = dict(zip(WIDE_COLUMNS, groups, strict=True))
    flat = {f"{part}.{name}": v for part, some in parts.items() for name, v in some.items()}
    return {**own, **made, **flat}


def ordered_columns(names: Iterable[str]) -> list[str]:
    """Return all columns in their order; of those that records differ in, the given ones."""
    known = set(names)
    wide = [sorted(n for n in known if n.startswith(f"{part}.")) for part in WIDE_COLUMNS]
    return [*FIRST_COLUMNS, *(name for some in wide for name in some), *LAST_COLUMNS]


def values_by_column(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Return the values of records by column; None where a record has none."""
    found: dict[str, list[Any]] = {name: [] for name in (*FIRST_COLUMNS, *LAST_COLUMNS)}
    count = 0
    for count, record in enumerate(records, 1):
        for name, value in as_row(record).items():
            column = found.setdefault(name, [])
            column += [None] * (count - 1 - len(column)) + [value]
    for column in found.values():
        column += [None] * (count - len(column))
    return {name: found[name] for name in ordered_columns(found)}


def column_help(name: str) -> str:
    """Return what a column holds.

    >>> column_help("metrics.accuracy")
    'a metric, in percent'
    """
    known: Sequence[Mapping[str, str]] = (FIRST_COLUMNS, LAST_COLUMNS)
    return (
        next((some[name] for some in known if name in some), "")
        or WIDE_COLUMNS[name.partition(".")[0]]
    )
