"""A table of rows with a class each, made strictly of a data frame."""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from contrastbench.domains.reading import is_number, refuse
from contrastbench.domains.samples import Array, Counted

if TYPE_CHECKING:
    import pandas

MAX_FEW_CATEGORIES = 20  # different words, which may be categories of a small table
NEAR_DIGITS = 6  # of a number, that nearly equal ones share
LEAST_OF_CLASS = 5  # rows, where parts are drawn
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
    doubts: dict[str, Any] = field(default_factory=dict)  # what is probably not as meant
    dropped: dict[str, Array] = field(default_factory=dict)  # columns that are no features
    groups: Sequence[str] | Array = ()  # of each row, such as its patient; kept whole

    def __len__(self) -> int:
        return len(self.y)

    @property
    def numbers(self) -> dict[str, Array]:
        return dict(zip(self.names, self.numeric.T, strict=False))

    @property
    def words(self) -> dict[str, Array]:
        return dict(zip(self.names[self.numeric.shape[1] :], self.categorical.T, strict=True))

    @property
    def columns(self) -> dict[str, Array]:
        return self.numbers | self.words

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        shape = (self.numeric.shape, self.names, self.classes, self.starts)
        digest.update(repr(shape).encode())
        digest.update(np.ascontiguousarray(self.numeric).data)
        digest.update(np.ascontiguousarray(self.y.astype(np.int64)).data)
        digest.update("\x1f".join(self.categorical.ravel()).encode())
        digest.update("\x1f".join(self.groups).encode())
        return digest.hexdigest()

    def near_keys(self, rows: Array) -> list[bytes]:
        """Return a digest of each of some rows, the same where numbers agree in six digits.

        They are digits of what the middle half of a column varies by: a time is no constant.
        """
        filled = np.nan_to_num(self.numeric[rows], posinf=0.0, neginf=0.0)
        low, high = np.quantile(filled, (0.25, 0.75), axis=0) if self.numbers else ((), ())
        spread = np.subtract(high, low)
        rounded = (self.numeric / np.where(spread > 0, spread, 1)).round(NEAR_DIGITS)
        return replace(self, numeric=rounded).keys(rows)

    def keys(self, rows: Array) -> list[bytes]:
        numbers = np.ascontiguousarray(self.numeric[rows]) + 0.0  # -0 equals 0
        words = map("\x1f".join, self.categorical[rows])
        pairs = zip(numbers, words, strict=True)
        return [hashlib.blake2b(x.tobytes() + word.encode()).digest() for x, word in pairs]


def from_frame(
    path: object, frame: "pandas.DataFrame", target: Any, starts: Starts | None = None
) -> TabularSet:
    """A table of a file's data frame; rows without a class are left out and counted."""
    from pandas.api.types import is_numeric_dtype

    labelled = frame[target].notna()
    features = frame.loc[labelled].drop(columns=target).apply(plain_floats)
    numbers = [column for column in features if is_numeric_dtype(features[column])]
    words = [column for column in features if column not in numbers]
    numeric = features[numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    classes, y = np.unique(frame.loc[labelled, target].astype(str), return_inverse=True)
    if starts:
        kept = [0, *labelled.cumsum()]
        starts = (None if starts[0] is None else int(kept[starts[0]]), int(kept[starts[1]]))
    left_out = [f"row {row + 1}" for row in np.flatnonzero(~labelled)]
    notes = {"rows without a class": Counted.of(left_out)} if left_out else {}
    names, known = tuple(map(str, [*numbers, *words])), tuple(map(str, classes))
    table = TabularSet(numeric, texts_of(features[words]), names, y, known, starts, notes)
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
