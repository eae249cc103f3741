"""Tables that users bring: CSV and Parquet files, and those of `datasets`.

One table is drawn into three parts by the seed, as the declared ones are. It may have its own test
part: a second file, a column that says which row is whose, or the splits of `datasets`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from contrastbench.domains import own, saved
from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import check_doubles
from contrastbench.domains.tabular.dates import DATES_NOTE, with_days
from contrastbench.domains.tabular.separated import line_of, read_csv
from contrastbench.domains.tabular.table import (
    Starts,
    TabularSet,
    check_categories,
    from_frame,
    suspicions,
    with_hash,
)
from contrastbench.domains.tabular.words import check_words
from contrastbench.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas

NO_TABLE = "cannot be read as a table"


class Frames(NamedTuple):
    """The parts of a table that a reader finds."""

    parts: "dict[str, pandas.DataFrame]"  # by name, training first; "": to be drawn
    notes: Mapping[str, Any] = MappingProxyType({})  # on what was converted
    files: Mapping[str, Path] = MappingProxyType({})  # CSV files by part, whose lines are named

    def place(self, part: str, row: int) -> str:
        """Say where a row of a part stands."""
        return f"line {line_of(self.files[part], row)}" if self.files else f"row {row + 1}"


class Roles(NamedTuple):
    """The columns of a user's table that are no features."""

    target: str | None = None  # the column of classes
    split: str | None = None  # the column that says which row is whose
    drop: tuple[str, ...] = ()  # columns that are left out
    lenient: bool = False  # whether a column that is split by or left out may not be there


def read_rows(
    what: str, source: Source, roles: Roles, data_root: Path | None
) -> tuple[TabularSet, str]:
    """A user's table, whose columns have these roles, and the sha256 of its content."""
    name, frames = f"{source.kind}:{what}", READERS[source.kind](what, data_root)
    named = with_names(name, frames.parts)
    if roles.lenient:
        there = {column for frame in named.values() for column in frame}
        split = roles.split if "" in named and roles.split in there else None
        drop = tuple(column for column in roles.drop if column in there)
        roles = roles._replace(split=split, drop=drop)
    parts = without_columns(name, named, roles)
    frame, starts = concatenate_parts(name, parts, roles.split)
    target = checked_target(name, frame, roles.target)
    frame, notes = with_days(name, frame, target)
    known = [target, roles.split, *notes.get(DATES_NOTE, [])]
    for part, rows in parts.items():
        features = rows.drop(columns=known, errors="ignore")
        check_words(name, features, partial(frames.place, part))
    table = from_frame(name, frame, target, starts)
    check_categories(name, table)
    notes |= {**frames.notes, **table.notes}
    return with_hash(replace(table, notes=notes, doubts=suspicions(table)))


def without_columns(
    name: str, parts: "dict[str, pandas.DataFrame]", roles: Roles
) -> "dict[str, pandas.DataFrame]":
    """Return the parts without the columns to leave out.

    Raises:
        UserError: there is no such column, or it holds the classes or the parts.
    """
    columns = {column for frame in parts.values() for column in frame}
    for column in roles.drop:
        if column not in columns:
            raise unknown(f"column of {name}", column, columns)
        if column in (roles.target, roles.split):
            use = "classes" if column == roles.target else "parts"
            raise UserError(f"{name}: column {column} holds the {use}: take it out of drop")
    return {
        part: frame.drop(columns=[*roles.drop], errors="ignore") for part, frame in parts.items()
    }


def with_names(name: str, parts: "dict[str, pandas.DataFrame]") -> "dict[str, pandas.DataFrame]":
    """The parts, whose columns have texts as names.

    Raises:
        UserError: two columns have one name.
    """
    for frame in parts.values():
        check_doubles(name, map(str, frame.columns))
    return {part: frame.rename(columns=str) for part, frame in parts.items()}


def checked_target(name: str, frame: "pandas.DataFrame", target: str | None) -> str:
    """Return the column of classes.

    Raises:
        UserError: it is not named, or not one of the table's.
    """
    names = list(frame.columns)
    if not len(frame):
        raise UserError(f"{name} has no rows")
    if len(names) == 1 and target != names[0]:
        raise UserError(
            f"{name} has one column, {names[0]!r}: put commas, semicolons or tabs between columns"
        )
    if target is None:
        few = names if len(names) <= 10 else [*names[:5], "...", *names[-5:]]
        raise UserError(
            f"{name}: name the column of classes with --target, or recipe: {{target: NAME}} in a "
            f"sweep file, one of {len(names)}: {', '.join(few)}"
        )
    if target not in names:
        raise unknown(f"column of {name}", target, names)
    return target


def concatenate_parts(
    name: str, parts: "dict[str, pandas.DataFrame]", split: str | None
) -> "tuple[pandas.DataFrame, Starts | None]":
    """One table, and where its parts start.

    Raises:
        UserError: parts of different columns, or without rows to train on or to test.
    """
    import pandas as pd

    if split is not None:
        if "" not in parts:
            raise UserError(f"{name} has its own parts: leave split={split} out")
        parts = split_by_column(name, parts[""], split)
    if "" in parts:
        return parts[""], None
    first, *others = parts.values()
    for part in others:
        check_columns(name, first, part)
    train, validation, test = (len(parts.get(part, ())) for part in own.PARTS)
    if not train or not test:
        raise UserError(f"{name} has no {'test' if train else 'training'} rows")
    frame = pd.concat(parts.values(), ignore_index=True)
    return frame, (train if validation else None, train + validation)


def split_by_column(
    name: str, frame: "pandas.DataFrame", split: str
) -> "dict[str, pandas.DataFrame]":
    """The parts that a column names."""
    if split not in frame:
        raise unknown(f"column of {name}", split, list(frame.columns))
    texts = frame[split].astype(str)
    part_of = texts.map(own.part_name)
    if part_of.isna().any():
        text = texts[part_of.isna()].iloc[0]
        raise UserError(f"{name}: column {split} has {text!r}: write train, validation or test")
    rest = frame.drop(columns=split)
    return {part: rest[part_of == part] for part in own.PARTS if (part_of == part).any()}


def check_columns(name: str, first: "pandas.DataFrame", part: "pandas.DataFrame") -> None:
    """Raise unless both parts have the same columns, of numbers or of words."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    for column in sorted({*first} ^ {*part}):
        raise UserError(f"{name}: column {column} is missing in one part: add it or remove it")
    for column in first:
        filled = [rows[column] for rows in (first, part) if rows[column].notna().any()]
        # True and False are words beside a hole
        kinds = {is_numeric_dtype(rows) and not is_bool_dtype(rows) for rows in filled}
        if len(kinds) > 1:
            raise UserError(f"{name}: column {column} has numbers in one part and words in another")


def files_reader(
    read: "Callable[[Path], pandas.DataFrame]", lines: bool = False
) -> Callable[[str, Path | None], Frames]:
    """A reader of one file, or of a training and a test file."""

    def frames(what: str, data_root: Path | None) -> Frames:
        paths = own.comma_files(what, data_root)
        named = dict(zip(("",) if len(paths) == 1 else ("train", "test"), paths, strict=True))
        tables = {part: read(path) for part, path in named.items()}
        notes = {k: v for table in tables.values() for k, v in table.attrs.pop("notes", {}).items()}
        return Frames(tables, notes=notes, files=named if lines else {})

    return frames


def read_parquet(path: Path) -> "pandas.DataFrame":
    """Read a Parquet file whose columns hold single values."""
    import pandas as pd
    from pyarrow import types

    for field in saved.schema_of(path):
        if types.is_nested(field.type):
            raise UserError(f"{path} is no table: column {field.name} is no single value")
    return pd.read_parquet(path)


def read_saved(what: str, data_root: Path | None) -> Frames:
    """The splits of a data set of the `datasets` library."""
    parts = saved.saved_parts(what, data_root)
    for part in parts.values():
        nested = [k for k, feature in part.features.items() if not hasattr(feature, "dtype")]
        if nested or part.num_rows * part.num_columns > saved.MAX_NUMBERS:
            fault = f"column {nested[0]} is no single value" if nested else "it is too large"
            raise UserError(f"hf:{what} is no table: {fault}")
    return Frames({part: rows.to_pandas() for part, rows in parts.items()})


READERS: dict[str, Callable[[str, Path | None], Frames]] = {
    "csv": files_reader(read_csv, lines=True),
    "parquet": files_reader(read_parquet),
    "hf": read_saved,
}
