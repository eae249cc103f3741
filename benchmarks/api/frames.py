"""Return records, tables and comparisons as data frames of pandas, without importing torch."""

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.report.comparison import compared, comparison_rows
from contrastbench.benchmarks.report.tables import table_rows
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.domains.reading import needing
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

if TYPE_CHECKING:
    from pandas import DataFrame

TUNING = tuple(Tune().seeds)  # that choose parameters, where no sweep file names others
# of a record in a frame; `docs/records.md` says what each holds
FIRST_COLUMNS = ("domain", "dataset", "loss", "seed", "status", "main", "score")
WIDE_COLUMNS = ("metrics", "params", "learned", "health", "recipe")  # one for each name
LAST_COLUMNS = (
    *("validation", "folds", "inner", "seconds", "peak_memory_mib", "device", "commit", "version"),
    *("protocol", "loss_code", "data_hash", "key", "error"),
)


def records(
    source: str | Path | Iterable[Record] = "results", but: Container[int] = TUNING
) -> "DataFrame":
    """Return a row for each record, including failed runs.

    Columns: domain, dataset, loss, seed, status, main and score (the metric that tables show, in
    percent), then metrics.*, params.*, learned.* (the last values of the loss's own parameters),
    health.* and recipe.*, then validation (the score by which a search chooses), folds, inner,
    seconds, peak_memory_mib, device, commit, version, protocol, loss_code, data_hash, key and
    error.

    Args:
        source: a folder of results, or what `run` has returned.
        but: seeds that are left out: those that choose parameters are no results. `()` takes all.

    Raises:
        UserError: a record was edited, or pandas is not installed.
    """
    if isinstance(source, str | Path):
        if not Path(source).is_dir():
            raise UserError(f"{source} is no folder of results: bench run makes one")
        source = (record for _, record in reading.all_records(Path(source)))
    rows = [as_row(record) for record in source if record["seed"] not in but]
    known = {name for row in rows for name in row}
    wide = [sorted(n for n in known if n.startswith(f"{part}.")) for part in WIDE_COLUMNS]
    return framed(rows, [*FIRST_COLUMNS, *chain(*wide), *LAST_COLUMNS])


def as_row(record: Record) -> dict[str, Any]:
    metrics, environment = record.get("metrics", {}), record["environment"]
    details = record["details"]
    known: dict[str, Any] = {**details, **environment, **record}
    known["score"] = metrics.get(record.get("main", ""))
    known["version"] = environment.get("versions", {}).get("contrastbench")
    own = {name: known.get(name) for name in (*FIRST_COLUMNS, *LAST_COLUMNS)}
    states: list[Fields] = [details.get("learned", {}), details.get("health", {})]
    groups = (metrics, record["params"], *states, record["recipe"])
    parts = dict(zip(WIDE_COLUMNS, groups, strict=True))
    flat = {f"{part}.{name}": v for part, some in parts.items() for name, v in some.items()}
    return {**own, **flat}


def table(
    name: str,
    *,
    losses: Sequence[str] | str = (),
    selection: str | None = None,
    results: str | Path = "results",
) -> "DataFrame":
    """A published table beside our numbers, or your own sweep file's, from records alone.

    A row for each place, with the columns of `bench table --format csv`.

    Args:
        name: see `bench list tables`; or the path of a YAML file.
        losses: they join a sweep file that does not have them.
        selection: paper: parameters as published; validation: chosen from grids.
        results: the folder that holds runs/ with the records.

    Raises:
        UserError: no such table or selection, or pandas is not installed.
    """
    with one_moment():
        chosen = resolved_table(name, losses, selection, Path(results))
        return as_frame(table_rows(chosen, entries(chosen)))


def compare(
    name: str,
    *,
    baseline: str | None = None,
    losses: Sequence[str] | str = (),
    selection: str | None = None,
    results: str | Path = "results",
) -> "DataFrame":
    """A table's rows against a baseline row: paired tests over shared seeds and folds.

    A row for each method and column, with the columns of `bench compare --format csv`. The
    verdicts over data sets are in words, as `attrs["answer"]` of the frame.

    Args:
        name: of a table, as in `table`.
        baseline: a row; the first with InfoNCE if it is left out.
        losses: as in `table`.
        selection: as in `table`.
        results: as in `table`.

    Raises:
        UserError: no such table or row, no two rows share a seed, or pandas is not installed.
    """
    with one_moment():
        chosen = resolved_table(name, losses, selection, Path(results))
        verdicts = compared(chosen, baseline)
        frame = as_frame(comparison_rows(verdicts))
        frame.attrs["answer"] = " ".join(said(verdicts))
        return frame


def resolved_table(
    name: str, losses: Sequence[str] | str, selection: str | None, results: Path
) -> Resolved:
    losses = [losses] if isinstance(losses, str) else losses
    joined = load_table(str(name), losses=[LossSpec(loss) for loss in losses])
    return resolve(joined, selection, results)


def framed(values: object, columns: Sequence[str] | None = None) -> "DataFrame":
    """Return a frame of rows, or of columns by name."""
    with needing("tabular", "a frame"):
        import pandas
    return pandas.DataFrame(values, columns=columns)


def as_frame(rows: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """Return rows as a frame; a number that is not there is NaN."""
    frame = framed(rows)
    from pandas import to_numeric

    texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    return frame.apply(lambda column: column if column.name in texts else to_numeric(column))
