"""Tables that users bring: CSV and Parquet files, those of `datasets` and of OpenML.

One table is drawn into three parts by the seed, as the declared ones are. It may have its own test
part: a second file, a column that says which row is whose, or the splits of `datasets`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
from pandas import DataFrame
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from pyarrow import types
from sklearn.datasets import fetch_openml

from contrastbench.domains import own, saved
from contrastbench.domains.download import cache_folder
from contrastbench.domains.reading import check_doubles, reading, refuse
from contrastbench.domains.report import found_by
from contrastbench.domains.samples import Array
from contrastbench.domains.tabular.frames import check_categories, column_array, from_frame
from contrastbench.domains.tabular.rules import DOUBTS
from contrastbench.domains.tabular.separated import line_of, read_csv, with_columns
from contrastbench.domains.tabular.table import Roles, Starts, TabularSet
from contrastbench.domains.tabular.words import DATES_NOTE, check_words, with_days
from contrastbench.errors import unknown


class Frames(NamedTuple):
    """The parts of a table that a reader finds."""

    parts: dict[str, DataFrame]  # by name, training first; "": to be drawn
    notes: Mapping[str, Any] = MappingProxyType({})  # on what was converted
    files: Mapping[str, Path] = MappingProxyType({})  # CSV files by part, whose lines are named
    target: str | None = None  # the column of classes, where it is known

    def place(self, row: int) -> str:
        """Say where a row stands, of all parts one after another."""
        (part, rows), *others = self.parts.items()
        if row >= len(rows):
            return self._replace(parts=dict(others)).place(row - len(rows))
        return f"line {line_of(self.files[part], row)}" if self.files else f"row {row + 1}"


def read_rows(kind: str, what: str, data_root: Path | None, roles: Roles) -> TabularSet:
    name, frames = f"{kind}:{what}", READERS[kind](what, data_root)
    for frame in frames.parts.values():
        check_doubles(name, map(str, frame.columns))
    named, count = {}, 0
    for part, frame in frames.parts.items():
        named[part] = frame.rename(columns=str).set_axis(range(count, count + len(frame)))
        count += len(frame)
    there = {column for frame in named.values() for column in frame}
    if roles.lenient:
        split = roles.split if "" in named and roles.split in there else None
        grouped = roles.groups if roles.groups in there else None
        drop = tuple(c for c in roles.drop if c in there)
        roles = roles._replace(split=split, drop=drop, groups=grouped)
    dropped = [*roles.drop, *filter(None, [roles.groups])]
    for column in dropped:
        check_column(name, column, there)
        fix = f": column {column} holds the {{}}: take it out of drop"
        held = "classes" * (column == roles.target) or "parts" * (column == roles.split)
        refuse(name, (held, fix))
    parts = {part: rows.drop(columns=dropped, errors="ignore") for part, rows in named.items()}
    frame, starts = concatenate_parts(name, parts, roles.split)
    target = checked_target(name, frame, roles.target or frames.target)
    frame, notes = with_days(name, frame, target, frames.place)
    known = [target, roles.split, *notes.get(DATES_NOTE, [])]
    for rows in parts.values():
        check_words(name, rows.drop(columns=known, errors="ignore"), frames.place)
    table = from_frame(name, frame, target, starts)
    check_categories(name, table)
    whole = pd.concat(named.values()).loc[frame.index[frame[target].notna()]]
    others = {column: column_array(whole[column]) for column in roles.drop}
    groups = whole[roles.groups].astype(str).to_numpy() if roles.groups else ()
    notes |= {**frames.notes, **table.notes}
    table = replace(table, notes=notes, dropped=others, groups=groups)
    return replace(table, doubts=found_by(DOUBTS, table))


def check_column(name: str, column: str, columns: Iterable[str]) -> None:
    if column not in columns:
        quoted = f"; names have quotes here: give \"'{column}'\"" * (f"'{column}'" in columns)
        raise unknown(f"column of {name}", column, columns, quoted)


def checked_target(name: str, frame: DataFrame, target: str | None) -> str:
    names = list(frame.columns)
    alone = [repr(only) for only in names if len(names) == 1 and target != only]
    few = ", ".join(names if len(names) <= 10 else [*names[:5], "...", *names[-5:]])
    fix = "with --target, or recipe: {target: NAME}"  # as a sweep file has it
    refuse(
        name,
        (not len(frame), " has no rows"),
        (alone, " has one column, {}: put commas, semicolons or tabs between columns"),
        (
            target is None,
            f": name the column of classes {fix} in a sweep file, one of {len(names)}: {few}",
        ),
    )
    assert target is not None, "refused above"
    check_column(name, target, names)
    return target


def concatenate_parts(
    name: str, parts: dict[str, DataFrame], split: str | None
) -> tuple[DataFrame, Starts | None]:
    if split is not None:
        refuse(name, ("" not in parts, f" has its own parts: leave split={split} out"))
        parts = split_by_column(name, parts[""], split)
    if "" in parts:
        return parts[""], None
    first, *others = parts.values()
    for part in others:
        check_columns(name, first, part)
    train, validation, test = (len(parts.get(part, ())) for part in own.PARTS)
    refuse(name, (not train, " has no training rows"), (not test, " has no test rows"))
    frame = pd.concat(parts.values())
    return frame, (train if validation else None, train + validation)


def split_by_column(name: str, frame: DataFrame, split: str) -> dict[str, DataFrame]:
    check_column(name, split, list(frame.columns))
    texts = frame[split].astype(str)
    part_of = texts.map(own.part_name)
    odd = [*map(repr, texts[part_of.isna()])]
    refuse(name, (odd, f": column {split} has {{}}: write train, validation or test"))
    rest = frame.drop(columns=split)
    return {part: rest[part_of == part] for part in own.PARTS if (part_of == part).any()}


def check_columns(name: str, first: DataFrame, part: DataFrame) -> None:
    lacking = sorted({*first} ^ {*part})
    refuse(name, (lacking, ": column {} is missing in one part: add it or remove it"))
    mixed = []
    for column in first:
        filled = [rows[column] for rows in (first, part) if rows[column].notna().any()]
        # True and False are words beside a hole
        kinds = {is_numeric_dtype(rows) and not is_bool_dtype(rows) for rows in filled}
        mixed += [column] * (len(kinds) > 1)
    refuse(name, (mixed, ": column {} has numbers in one part and words in another"))


def read_files(read: Callable[[Path], DataFrame], what: str, data_root: Path | None) -> Frames:
    paths = own.comma_files(what, data_root)
    named = dict(zip(("",) if len(paths) == 1 else ("train", "test"), paths, strict=True))
    tables = {part: read(path) for part, path in named.items()}
    notes = {k: v for table in tables.values() for k, v in table.attrs.pop("notes", {}).items()}
    return Frames(tables, notes, named if read is read_csv else {})


def read_parquet(path: Path) -> DataFrame:
    nested = [field.name for field in saved.schema_of(path) if types.is_nested(field.type)]
    refuse(path, (nested, " is no table: column {} is no single value"))
    frame = pd.read_parquet(path)
    named = [*filter(None, frame.index.names)]
    frame.attrs["notes"] = {"index of pandas, left out": named} if named else {}
    return frame


def read_saved(what: str, data_root: Path | None) -> Frames:
    parts, notes = saved.saved_parts(what, data_root)
    for part in parts.values():
        nested = [k for k, feature in part.features.items() if not hasattr(feature, "dtype")]
        large = part.num_rows * part.num_columns > saved.MAX_NUMBERS
        refuse(
            f"hf:{what} is no table: ",
            (nested, "column {} is no single value"),
            (large, "it is too large"),
        )
    return Frames({part: rows.to_pandas() for part, rows in parts.items()}, notes)


def read_openml(what: str, data_root: Path | None) -> Frames:
    refuse(f"openml:{what}", (not what.isdecimal(), " is no number of a table: give openml:61"))
    place = str(data_root or cache_folder())
    fix = "give the number of a table of openml.org, and a network for the first time"
    with reading(f"openml:{what}", fix, "cannot be had"):
        found = fetch_openml(data_id=int(what), data_home=place, as_frame=True, n_retries=1)
    version = f"{found.details['name']}, version {found.details['version']}"
    targets = [*found.target_names][:1] or [None]
    return Frames({"": found.frame}, {"table of OpenML": version}, target=targets[0])


READERS: dict[str, Callable[[str, Path | None], Frames]] = {
    "csv": partial(read_files, read_csv),
    "parquet": partial(read_files, read_parquet),
    "hf": read_saved,
    "openml": read_openml,
}


def frame_of(data: Any, words: Collection[str]) -> DataFrame:
    """Return a table of a CSV or Parquet file, or of what pandas makes one of.

    Some columns of a CSV file are words even where all of them look like numbers.
    """
    if not isinstance(data, str | Path):
        return DataFrame(data)
    path, fix = Path(data), "give the path of a CSV or Parquet file"
    refuse("no file", (not path.is_file(), f" {path}: {fix}"))
    return read_parquet(path) if path.suffix == ".parquet" else read_csv(path, words)


def all_rows(kind: str, what: str, data_root: Path | None, words: Collection[str]) -> DataFrame:
    if kind == "csv":
        parts = [read_csv(path, words) for path in own.comma_files(what, data_root)]
    else:
        parts = [*READERS[kind](what, data_root).parts.values()]
    return pd.concat(parts, ignore_index=True)


def columns_of(frame: DataFrame, names: Iterable[str], words: Collection[str]) -> dict[str, Array]:
    """Return those columns by name, as far as they are there; dates as days where not words."""
    named = frame.rename(columns=str)
    known = named[[name for name in names if name in named.columns]]
    numbers = known[[name for name in known.columns if name not in words]]
    whole = with_columns(known, with_days("the table", numbers, but="")[0])
    return {str(name): column_array(whole[name]) for name in whole.columns}
