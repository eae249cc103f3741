"""Tables of pandas' frames, made strictly: declared files, and what all files have to hold."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pandas import DataFrame, Series
from pandas.api.types import infer_dtype, is_bool_dtype, is_float_dtype, is_numeric_dtype

from contrastbench.domains.reading import is_number, refuse
from contrastbench.domains.samples import Array, Counted
from contrastbench.domains.tabular import TabularDataset
from contrastbench.domains.tabular.table import MAX_FEW_CATEGORIES, Starts, TabularSet

LEAST_OF_CLASS = 5  # rows, where parts are drawn
# the class and the 21 low-level features; the other 7 are computed from them
HIGGS_COLUMNS = range(22)


def read_table(path: Path, dataset: TabularDataset) -> TabularSet:
    """Read a table of tabs with a header, as PMLB's; by a number as target of commas without."""
    how: dict[str, Any] = {"sep": "\t"} if isinstance(dataset.target, str) else {"header": None}
    frame = pd.read_csv(path, **how)
    check_shape(path, frame.shape, dataset.sizes)
    return from_frame(path, frame, dataset.target, starts=dataset.starts)


def read_higgs(path: Path, dataset: TabularDataset) -> TabularSet:
    """Higgs-100K: rows drawn by numpy's seed 1, a fifth for validation; the last are the test.

    The 100,000 rows are those of i-Mix's code (tabular.py), which draws `choice(10500000, 100000,
    replace=False)` after that seed; here in the order of the file.
    """
    rows, columns = dataset.sizes
    assert dataset.parts, "they are declared"
    train, validation, test = dataset.parts
    keep = np.zeros(rows, dtype=bool)
    keep[np.random.RandomState(1).permutation(rows - test)[: train + validation]] = True
    keep[-test:] = True
    parts, read = [], 0
    with pd.read_csv(path, header=None, dtype=np.float32, chunksize=500_000) as chunks:
        for chunk in chunks:
            check_shape(
                path, (min(rows, read + len(chunk)), chunk.shape[1]), (read + len(chunk), columns)
            )
            parts.append(chunk.loc[keep[read : read + len(chunk)], HIGGS_COLUMNS])
            read += len(chunk)
    check_shape(path, (read, columns), dataset.sizes)
    return from_frame(path, pd.concat(parts), dataset.target, starts=dataset.starts)


def check_shape(path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    fault = f" is damaged: {shape} rows and columns instead of {expected}"
    refuse(path, (shape != expected, fault))


def from_frame(
    path: object, frame: DataFrame, target: Any, starts: Starts | None = None
) -> TabularSet:
    """A table of a file's data frame; rows without a class are left out and counted."""
    labelled = frame[target].notna()
    features = frame.loc[labelled].drop(columns=target).apply(plain_floats)
    numbers = [column for column in features if is_numeric_dtype(features[column])]
    words = [column for column in features if column not in numbers]
    numeric = features[numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    named = frame.loc[labelled, target]
    rounded = is_float_dtype(named) and (named.abs() >= 2**53).any()
    fault = f": classes of 16 digits or more in {target} are rounded: put a letter before each"
    refuse(path, (rounded, fault))
    classes, y = np.unique(named.astype(str), return_inverse=True)
    if starts:
        kept = [0, *labelled.cumsum()]
        starts = (None if starts[0] is None else int(kept[starts[0]]), int(kept[starts[1]]))
    left_out = [f"row {row + 1}" for row in np.flatnonzero(~labelled)]
    notes = {"rows without a class": Counted.of(left_out)} if left_out else {}
    names, known = tuple(map(str, [*numbers, *words])), tuple(map(str, classes))
    table = TabularSet(numeric, texts_of(features[words]), names, y, known, starts, notes)
    check_table(path, table)
    return table


def plain_floats(column: Series) -> Series:
    """Decimal and very large whole numbers, which pandas takes for objects, as floats."""
    numbers = infer_dtype(column, skipna=True) in ("decimal", "integer")
    return column.astype(float) if numbers and column.dtype == object else column


def column_array(column: Series) -> Array:
    """Return a column as floats with nan, or as words with "", where a value is missing."""
    column = plain_floats(column)
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return texts_of(column)


def texts_of(values: DataFrame | Series) -> Array:
    return values.astype(object).where(values.notna(), "").astype(str).to_numpy(dtype=object)


def check_table(path: object, table: TabularSet) -> None:
    validation, test = table.starts or (None, len(table))
    rows = f"all {len(table)} rows are of one class"
    refuse(
        path,
        (not table.names, " has only the column of classes: add a feature"),
        (not len(table), ": the column of classes is empty: fill it, or name another one"),
        (len(table.classes) < 2, f": {rows}: there is nothing to classify"),
        (table.starts and test == len(table), ": no test row has a class"),
        (validation == test, ": no validation row has a class"),
    )
    counts = np.bincount(table.y[: validation or test], minlength=len(table.classes))
    rarest, few = table.classes[counts.argmin()], int(counts.min())
    fix = "add some, leave its rows out, or name another column of classes"
    needed = f"{few} of {LEAST_OF_CLASS} rows that three parts need: {fix}"
    lacking = f"{rarest} has no training rows: add some, or leave it out"
    refuse(
        f"{path}: class ",
        (table.starts and not few, lacking),
        (validation is None and few < LEAST_OF_CLASS, f"{rarest} has {needed}"),
    )


def check_categories(path: object, table: TabularSet) -> None:
    """Raise if columns hold words that hardly repeat, such as names and sentences.

    One-hot they would be many inputs that tell nothing of other rows.
    """
    distinct = [
        name
        for name, column in table.words.items()
        if len({*column} - {""}) > max(MAX_FEW_CATEGORIES, (column != "").sum() / 2)
    ]
    numbers = [name for name in distinct if all(map(is_number, {*table.words[name]} - {""}))]
    refuse(path, (numbers, ": column {} has numbers kept as texts: save them as numbers"))
    fix = f"leave out what no rows share with {drop_option(distinct)}, and write numbers as 12.5"
    refuse(path, (", ".join(distinct), ": most words stand in one row only in {}: " + fix))


def drop_option(columns: list[str]) -> str:
    """Return the option that leaves out columns, as it is typed.

    >>> print(drop_option(["id", "day of birth", "1"]))
    --recipe 'drop=[id, day of birth, '"'"'1'"'"']'
    """
    names = yaml.safe_dump(columns, default_flow_style=True, allow_unicode=True, width=10**6)
    return f"--recipe {shlex.quote(f'drop={names.strip()}')}"
