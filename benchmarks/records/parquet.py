"""Write records as one Parquet file with a data card, for pandas, polars and `datasets`.

A column of Parquet has one type. Where the values of a parameter or a setting have several, or are
lists, the column holds them as JSON.
"""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from contrastbench.benchmarks.records import columns, files, reading
from contrastbench.errors import UserError

if TYPE_CHECKING:
    from pyarrow import Array, Table

LIST_COLUMNS = ("folds", "inner")
NUMERIC_COLUMNS = ("score", "seconds", "peak_memory_mib")
DATA_CARD = "README.md"
TAG = "contrastbench-records"  # the card has it, so that no other page is replaced


def write_all_records(results: Path, path: Path) -> list[Path]:
    """Write all records of a folder as a Parquet file, with a data card beside it.

    Returns:
        The files that were written. A page `README.md` that is no such card stays as it is.

    Raises:
        UserError: there are no records, pyarrow is not installed, or nothing can be written.
    """
    arrow = with_pyarrow()
    table = arrow_table(arrow, results)
    data, about = io.BytesIO(), path.parent / DATA_CARD
    arrow.parquet.write_table(table, data, compression="zstd")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, data.getvalue())
        if about.exists() and TAG not in about.read_text(encoding="utf-8", errors="replace"):
            return [path]
        files.replace(about, card(table, path.name))
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror}): name another file") from None
    return [path, about]


def with_pyarrow() -> ModuleType:
    """Import and return pyarrow with its reader of Parquet files.

    Raises:
        UserError: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        fix = 'pip install "contrastbench[tabular]"'
        raise UserError(f"a Parquet file needs pyarrow, which is not installed: {fix}") from None
    return pyarrow


def arrow_table(arrow: ModuleType, results: Path) -> "Table":
    """Return the records of a folder as a table of pyarrow, one row a record."""
    found = columns.values_by_column(record for _, record in reading.all_records(results))
    if not found["key"]:
        raise UserError(f"{results} holds no records: name a folder that holds runs/")
    return arrow.table({name: arrow_array(arrow, name, values) for name, values in found.items()})


def arrow_array(arrow: ModuleType, name: str, values: Sequence[Any]) -> "Array":
    """Return the values of a column as an array of one type."""
    if name in LIST_COLUMNS:
        return arrow.array(values, arrow.list_(arrow.float64()))
    if name in NUMERIC_COLUMNS or name.startswith("metrics."):
        return arrow.array(values, arrow.float64())
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return arrow.array([None if one is None else float(one) for one in values])
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return arrow.array(values)
    return arrow.array([None if one is None else json.dumps(one) for one in values], arrow.string())


def card(table: "Table", name: str) -> str:
    """Return the data card: a header for the Hugging Face hub, then the columns."""
    schema = [(field.name, str(field.type)) for field in table.schema]
    rows = [f"| `{one}` | {kind} | {columns.column_help(one)} |" for one, kind in schema]
    return CARD_TEXT.format(name=name, tag=TAG, count=table.num_rows, rows="\n".join(rows))


CARD_TEXT = """\
---
pretty_name: Records of contrastive losses
tags:
- contrastive-learning
- benchmark
- {tag}
configs:
- config_name: default
  data_files: {name}
---

# Records of contrastive losses

`bench merge --parquet {name}` of contrastbench wrote these {count} records, one row each.
A record is one training with one loss on one data set with one seed, and what it scored.
Failed runs are among them.

```python
import pandas, polars, datasets

pandas.read_parquet("{name}")
polars.read_parquet("{name}")
datasets.load_dataset("parquet", data_files="{name}", split="train")
```

Seeds from 1000 on chose parameters and are no results. A column of type `string` holds JSON
where its values have several types or are lists.

| column | type | holds |
| --- | --- | --- |
{rows}
"""
