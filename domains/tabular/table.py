"""A table of rows with a class each, made strictly of a data frame."""

import hashlib
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from contrastbench.domains.own import part_name
from contrastbench.domains.report import FEW, Counted, class_doubts, look_alikes
from contrastbench.errors import UserError

if TYPE_CHECKING:
    import pandas

Array = np.ndarray[Any, np.dtype[Any]]
MAX_FEW_CATEGORIES = 20  # different words, which may be categories of a small table
IDS = re.compile(r"(?i)(?:.*[_ -])?(?:id|uuid)")
PLACES = re.compile(r"(?i)(?:zip|postal|post|plz|postleitzahl)(?:[ _-]?(?:code|index))?")
Starts = tuple[int | None, int]  # of the validation and the test rows; None: the seed draws them


@dataclass(frozen=True)
class TabularSet:
    """Rows of numeric and of categorical columns, with a class each."""

    numeric: Array  # (rows, columns) floats, nan where missing
    categorical: Array  # (rows, columns) strings, "" where missing
    names: tuple[str, ...]  # of the numeric and then of the categorical columns
    y: Array  # (rows,) classes 0, 1, ...
    classes: tuple[str, ...]
    starts: Starts | None = None  # None: the seed draws all three parts
    notes: dict[str, Any] = field(default_factory=dict)  # what reading left out
    doubts: dict[str, list[str]] = field(default_factory=dict)  # what is probably not as meant

    def __len__(self) -> int:
        return len(self.y)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the names of the categorical columns."""
        return self.names[self.numeric.shape[1] :]

    def keys(self, rows: Array) -> list[bytes]:
        """Return a digest of each of some rows, the same for equal ones."""
        numbers = np.ascontiguousarray(self.numeric[rows]) + 0.0  # -0 equals 0
        words = map("\x1f".join, self.categorical[rows])
        pairs = zip(numbers, words, strict=True)
        return [hashlib.blake2b(x.tobytes() + word.encode()).digest() for x, word in pairs]


def from_frame(
    path: object, frame: "pandas.DataFrame", target: Any, starts: Starts | None = None
) -> TabularSet:
    """A table of a file's data frame; rows without a class are left out and counted.

    Raises:
        UserError: no features, one class only, classes that are hardly told apart, or a class too
            rare for three parts.
    """
    from pandas.api.types import is_numeric_dtype

    labelled = frame[target].notna()
    features = frame.loc[labelled].drop(columns=target).apply(plain_floats)
    numbers = [column for column in features if is_numeric_dtype(features[column])]
    words = [column for column in features if column not in numbers]
    numeric = features[numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    categorical = texts_of(features[words])
    classes, y = np.unique(frame.loc[labelled, target].astype(str), return_inverse=True)
    names = tuple(map(str, [*numbers, *words]))
    if starts:
        kept = [0, *labelled.cumsum()]
        starts = (None if starts[0] is None else int(kept[starts[0]]), int(kept[starts[1]]))
    left_out = np.flatnonzero(~labelled)
    notes: dict[str, Any] = {}
    if len(left_out):
        notes["rows without a class"] = Counted(len(left_out), f"row {left_out[0] + 1}")
    table = TabularSet(numeric, categorical, names, y, tuple(map(str, classes)), starts, notes)
    check_table(path, table)
    return table


def plain_floats(column: "pandas.Series") -> "pandas.Series":
    """Decimal and very large whole numbers, which pandas takes for objects, as floats."""
    from pandas.api.types import infer_dtype

    numbers = infer_dtype(column, skipna=True) in ("decimal", "integer")
    return column.astype(float) if numbers and column.dtype == object else column


def column_array(column: "pandas.Series") -> Array:
    """Return a column as floats with nan, or as words with "", where a value is missing."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    column = plain_floats(column)
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return texts_of(column)


def texts_of(values: "pandas.DataFrame | pandas.Series") -> Array:
    """Return words as an array of texts, empty where one is missing."""
    return values.astype(object).where(values.notna(), "").astype(str).to_numpy(dtype=object)


def check_table(path: object, table: TabularSet) -> None:
    """Raise unless there is something to learn from and to classify."""
    if not table.names:
        raise UserError(f"{path} has only the column of classes: add a feature")
    if not len(table):
        raise UserError(f"{path}: the column of classes is empty: fill it, or name another one")
    if len(table.classes) < 2:
        rows = f"all {len(table)} rows are of one class"
        raise UserError(f"{path}: {rows}: there is nothing to classify")
    check_classes(path, table)


def check_classes(path: object, table: TabularSet) -> None:
    """Raise unless every class has rows to train on, and enough where parts are drawn."""
    validation, test = table.starts or (None, len(table))
    if table.starts and (test == len(table) or validation == test):
        part = "test" if test == len(table) else "validation"
        raise UserError(f"{path}: no {part} row has a class")
    counts = np.bincount(table.y[: validation or test], minlength=len(table.classes))
    if not counts.min() and table.starts:
        name = table.classes[counts.argmin()]
        raise UserError(f"{path}: class {name} has no training rows: add some, or leave it out")
    if validation is None and counts.min() < 5:
        few = f"{path}: class {table.classes[counts.argmin()]} has {counts.min()} of 5 rows"
        fix = "add some, leave its rows out, or name another column of classes"
        raise UserError(f"{few} that three parts need: {fix}")


def check_categories(path: object, table: TabularSet) -> None:
    """Raise if columns hold words that hardly repeat, such as names and sentences.

    One-hot they would be many inputs that tell nothing of other rows.
    """
    distinct = [
        name
        for name, column in zip(table.words, table.categorical.T, strict=True)
        if len({*column} - {""}) > max(MAX_FEW_CATEGORIES, (column != "").sum() / 2)
    ]
    if distinct:
        raise UserError(
            f"{path}: most words stand in one row only in {', '.join(distinct)}: "
            f"leave out what no rows share with {drop_option(distinct)}, and write numbers as 12.5"
        )


def drop_option(columns: list[str]) -> str:
    """Return the option that leaves out columns, as it is typed.

    >>> print(drop_option(["id", "day of birth", "1"]))
    --recipe 'drop=[id, day of birth, '"'"'1'"'"']'
    """
    names = yaml.safe_dump(columns, default_flow_style=True, allow_unicode=True, width=10**6)
    return f"--recipe {shlex.quote(f'drop={names.strip()}')}"


def suspicions(table: TabularSet) -> dict[str, list[str]]:
    """Columns and classes of a user's table that are probably not meant as they are."""
    numbers = dict(zip(table.names, table.numeric.T, strict=False))
    words = dict(zip(table.words, table.categorical.T, strict=True))
    counting = [name for name, column in numbers.items() if numbers_rows(column, table.y)]
    doubts = {
        "columns that tell the class, one value for each": [
            name for name, column in (numbers | words).items() if renames(column, table)
        ],
        "columns that number the rows, or sort them by class": counting,
        "columns that number samples by their names: leave them out by drop": [
            name for name in numbers if IDS.fullmatch(name) and name not in counting
        ],
        "columns that say train or test: give recipe split, or drop": [
            name for name, column in words.items() if {"train", "test"} <= {*map(part_name, column)}
        ],
        "columns of texts with line breaks, perhaps by a stray quote": [
            name for name, column in words.items() if any("\n" in text for text in column)
        ],
        "columns of codes of places, read as numbers: a letter before each makes them categories": [
            name for name in numbers if PLACES.fullmatch(name)
        ],
        "numbers that may stand for what is missing: leave it empty": [
            f"{name} {value:g} ({count} times)"
            for name, column in numbers.items()
            for value, count in nines(column)
        ],
        "dates without signs between, read as numbers: write 2020-12-31": [
            name for name, column in numbers.items() if plain_dates(column)
        ],
        "whole numbers of 16 to 20 digits, which are rounded: a letter before makes them words": [
            name for name, column in numbers.items() if are_long(column)
        ],
        "columns whose words look alike": [
            name for name, column in words.items() if look_alikes({*column})
        ],
    }
    return {note: names for note, names in doubts.items() if names} | class_doubts(table.classes)


def plain_dates(column: Array) -> bool:
    """Return whether all numbers are dates such as 20201231.

    >>> plain_dates(np.array([20201231.0, np.nan])), plain_dates(np.array([20201331.0]))
    (True, False)
    """
    x = column[np.isfinite(column)]
    months, days, whole = x // 100 % 100, x % 100, x == x.round()
    dates = (x >= 19e6) & (x < 21e6) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return bool(len(x) and (dates & whole).all())


def are_long(column: Array) -> bool:
    """Return whether all numbers are whole, and one is too long for a float."""
    x = np.abs(column[np.isfinite(column)])
    return bool(2**53 < x.max(initial=0) < 1e20 and (x == x.round()).all())


def numbers_rows(column: Array, y: Array) -> bool:
    """Return whether whole numbers count the rows, or each class has a range of its own.

    >>> numbers_rows(np.array([3.0, 1.0, 2.0]), np.array([1, 0, 1]))
    True
    """
    if not np.array_equal(column, np.round(column)) or len(np.unique(column)) < len(column):
        return False
    changes = np.count_nonzero(np.diff(y[np.argsort(column)]))
    return bool(changes == y.max() or np.ptp(column) == len(column) - 1)


def nines(column: Array) -> list[tuple[float, int]]:
    """Return values of nines, or minus them, that stand apart from all others, and how often.

    They are there three times or more, and farther from the others than those vary, or far more
    often. So is -1 to -9 where it alone is negative.

    >>> nines(np.array([*range(18, 90), 999, 999, 999])), nines(np.array([*range(50), -1, -1, -1]))
    ([(999.0, 3)], [(-1.0, 3)])
    """
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    if len(values) <= MAX_FEW_CATEGORIES // 2:
        return []
    codes = []
    for k in (0, len(values) - 1):
        others, value, text = np.delete(values, k), values[k], f"{values[k]:.15g}"
        apart = np.abs(others - value).min() > np.ptp(others)
        often = counts[k] > FEW * np.delete(counts, k).max()
        coded = bool(re.fullmatch("-?99+", text)) and (apart or often)
        coded |= bool(re.fullmatch("-[1-9]", text)) and others.min() >= 0
        if counts[k] >= FEW and coded:
            codes.append((float(value), int(counts[k])))
    return codes


def renames(column: Array, table: TabularSet) -> bool:
    """Return whether a column has one value for each class; holes may be a value or be left out."""
    import pandas as pd

    pairs = pd.DataFrame({"x": column, "y": table.y}).drop_duplicates()
    filled = pairs[pairs.x.notna() & (pairs.x != "")]
    return any(
        len(some) == some.x.nunique(dropna=False) == some.y.nunique() == len(table.classes)
        for some in (pairs, filled)
    )


def with_hash(table: TabularSet) -> tuple[TabularSet, str]:
    """The table and the sha256 of what it holds, however its file was packed."""
    digest = hashlib.sha256()
    digest.update(repr((table.numeric.shape, table.names, table.classes, table.starts)).encode())
    digest.update(np.ascontiguousarray(table.numeric).data)
    digest.update(np.ascontiguousarray(table.y.astype(np.int64)).data)
    digest.update("\x1f".join(table.categorical.ravel()).encode())
    return table, digest.hexdigest()
