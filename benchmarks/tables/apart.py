"""Records of other data than a place's own stand in rows of their own: they are never mixed."""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.records.scored import copy_of
from contrastbench.benchmarks.tables.table import Row, Table

SHORT = 12  # digits of a data hash, for people


def apart(table: Table, results: Path) -> Table:
    """The table with a further row for each further data that a row has records of."""
    rows = [one for row in table.rows for one in (row, *further(table, row, results))]
    split = table.model_copy(update={"rows": rows})
    return split.model_copy(update={"copies": list(copies(split, results))})


def further(table: Table, row: Row, results: Path) -> Iterator[Row]:
    """The row again, once for each other data, with the columns that have them alone."""
    columns: dict[str, list[str]] = {}
    for column in table.columns:
        if table.runnable(row, column):
            for data_hash in list(table.by_data(row, column, results))[1:]:
                columns.setdefault(data_hash, []).append(column)
    for data_hash, names in columns.items():
        yield row.model_copy(
            update={
                "name": f"{row.name}, data {data_hash[:SHORT]}",
                "repeats": row.name,
                "data": dict.fromkeys(names, data_hash),
                "paper": {name: row.paper[name] for name in names if name in row.paper},
            }
        )


def copies(table: Table, results: Path) -> Iterator[str]:
    """Yield notes on the known copies of datasets that a table's records used."""
    columns: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        for column in table.columns:
            if not table.runnable(row, column):
                continue
            for record in table.records(row, column, results).values():
                about = copy_of(record)
                if about:
                    names = columns.setdefault((record["data_hash"], about), [])
                    names += [column] if column not in names else []
    for (data_hash, about), names in columns.items():
        where = f"{', '.join(names)}, data {data_hash[:SHORT]}"
        yield f"{where}: not the published set's own file, {about}."
