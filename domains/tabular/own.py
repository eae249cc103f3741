"""Tables that users bring: CSV and Parquet files, the hub's and OpenML's.

One table is drawn into three parts by the seed, as the declared ones are. It may have its own test
part: a second file, a column that says which row is whose, or the splits of the hub.
"""

import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from contrastbench.domains import download, hub, own
from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import UNPACKED, cause, check_doubles
from contrastbench.domains.tabular.table import Starts, Table, from_frame, suspicions, with_hash
from contrastbench.losses.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas

MAX_NUMBERS = 2**31  # of a Parquet file: 16 GiB
MISSING = ("NaN", "nan", "null", "NULL", "None", "N/A", "n/a", "#N/A", "<NA>")
NO_TABLE = "cannot be read as a table"


class Frames(NamedTuple):
    """The parts of a table that a reader finds."""

    parts: "dict[str, pandas.DataFrame]"  # by name, training first; "": to be drawn
    target: str | None = None  # the column of classes, where the data say
    source: str = ""  # for the record


def load(
    source: Source, what: str, target: str | None, split: str | None, data_root: Path | None
) -> tuple[Table, str]:
    """A user's table and the sha256 of its content."""
    state = own.state(what, data_root)
    return load_unchanged(source, what, target, split, data_root, state)


@lru_cache(maxsize=1)
def load_unchanged(
    source: Source,
    what: str,
    target: str | None,
    split: str | None,
    data_root: Path | None,
    state: str,
) -> tuple[Table, str]:
    """Load like `load`, from memory if the source has not changed since the last seed."""
    name = f"{source.kind}:{what}"
    with own.opened(source, name, NO_TABLE):
        frames = READERS[source.kind](what, data_root)
        frame, starts = united(name, with_names(name, frames.parts), split)
        target = target or frames.target
        check_target(name, frame, target)
        table = from_frame(name, frame, target, starts)
        notes = table.notes | ({"source": frames.source} if frames.source else {})
        return with_hash(replace(table, notes=notes | suspicions(table)))


def with_names(name: str, parts: "dict[str, pandas.DataFrame]") -> "dict[str, pandas.DataFrame]":
    """The parts, whose columns have texts as names.

    Raises:
        UserError: two columns have one name.
    """
    for frame in parts.values():
        check_doubles(name, map(str, frame.columns))
    return {
        part: frame.set_axis([str(column) for column in frame.columns], axis=1)
        for part, frame in parts.items()
    }


def check_target(name: str, frame: "pandas.DataFrame", target: str | None) -> None:
    """Raise unless the column of classes is one of the table's."""
    names = list(frame.columns)
    if not len(frame):
        raise UserError(f"{name} has no rows")
    if target is None:
        raise UserError(
            f"{name}: name the column of classes with --target, one of {', '.join(names)}"
        )
    if target not in names:
        raise unknown(f"column of {name}", target, names)


def united(
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
        parts = by_column(name, parts[""], split)
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


def by_column(name: str, frame: "pandas.DataFrame", split: str) -> "dict[str, pandas.DataFrame]":
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


def read_files(
    read: "Callable[[Path], pandas.DataFrame]",
) -> Callable[[str, Path | None], Frames]:
    """A reader of one file, or of a training and a test file."""

    def frames(what: str, data_root: Path | None) -> Frames:
        tables = [read(path) for path in own.files(what, data_root)]
        names = ("",) if len(tables) == 1 else ("train", "test")
        return Frames(dict(zip(names, tables, strict=True)))

    return frames


def read_csv(path: Path, words: Collection[str] = ()) -> "pandas.DataFrame":
    """A CSV file with a header, .tsv with tabs; empty fields, NA and ? are missing.

    Among numbers also NaN, null and the like, which among words may be words.

    Args:
        path: the file.
        words: columns that are words even where all of them look like numbers.

    Raises:
        UserError: two columns have one name, or rows have more fields than the header.
    """
    import pandas as pd

    check_unpacked(path)
    separator = "\t" if ".tsv" in path.suffixes[-2:] else ","
    read = partial(pd.read_csv, path, sep=separator, keep_default_na=False, skipinitialspace=True)
    header = read(header=None, nrows=1, dtype=str).iloc[0]
    check_doubles(path, filter(None, header))  # pandas would rename the second
    texts = dict.fromkeys(words, str)
    frame = read(na_values=["", "NA", "?"], low_memory=False, dtype=texts)
    if not isinstance(frame.index, pd.RangeIndex):
        raise UserError(f"{path}: rows have more fields than the header has names: name them all")
    return frame.apply(lambda column: column if column.name in texts else as_numbers(column))


def as_numbers(column: "pandas.Series") -> "pandas.Series":
    """A column of words as numbers, if all its words but those for what is missing are numbers."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    known = column[column.notna() & ~column.isin(MISSING)]
    numbers = pd.to_numeric(known, errors="coerce")
    return numbers.reindex(column.index) if len(known) and numbers.notna().all() else column


def check_unpacked(path: Path) -> None:
    """Raise if a packed file, whose few bytes may stand for any number, unpacks to too many."""
    from pandas.io.common import get_handle, infer_compression

    if infer_compression(path, "infer") is None:
        return
    with get_handle(path, "rb", compression="infer", is_text=False) as handles:
        blocks = iter(lambda: handles.handle.read(2**20), b"")
        if any(size > UNPACKED for size in accumulate(map(len, blocks))):
            raise UserError(f"{path} unpacks to more than {UNPACKED / 2**30:.3g} GiB")


def read_parquet(path: Path) -> "pandas.DataFrame":
    """A Parquet file, whose few bytes may stand for any number of equal rows."""
    import pandas as pd
    from pyarrow import parquet, types

    kept = parquet.read_metadata(path)
    schema = kept.schema.to_arrow_schema()
    check_doubles(path, schema.names)
    for field in schema:
        if types.is_nested(field.type):
            raise UserError(f"{path} is no table: column {field.name} is no single value")
    if kept.num_rows * kept.num_columns > MAX_NUMBERS:
        size = f"{kept.num_rows} rows of {kept.num_columns} columns"
        raise UserError(f"{path} is too large ({size}): leave rows or columns out")
    return pd.read_parquet(path)


def read_hub(what: str, data_root: Path | None) -> Frames:
    """The splits of a data set of the `datasets` library."""
    parts = hub.parts(what, data_root)
    for part in parts.values():
        nested = [k for k, feature in part.features.items() if not hasattr(feature, "dtype")]
        if nested or part.num_rows * part.num_columns > MAX_NUMBERS:
            fault = f"column {nested[0]} is no single value" if nested else "it is too large"
            raise UserError(f"hf:{what} is no table: {fault}")
    return Frames({part: rows.to_pandas() for part, rows in parts.items()})


def read_openml(what: str, data_root: Path | None) -> Frames:
    """A data set of OpenML by its number, whose md5 scikit-learn compares with the server's."""
    there = data_root is not None and (data_root / "openml").is_dir()
    return fetch(what, data_root if data_root and there else download.cache_folder())


def fetch(what: str, folder: Path) -> Frames:
    """Read like `read_openml`, keeping the files in a folder by scikit-learn.

    Raises:
        UserError: it is not there, and OpenML cannot be reached; or the md5 is another.
    """
    from sklearn import datasets

    if not what.isdecimal():
        raise UserError(f"openml:{what}: give the number in its address, such as openml:61")
    try:
        with warnings.catch_warnings():  # of retries
            warnings.simplefilter("ignore")
            found = datasets.fetch_openml(
                data_id=int(what),
                data_home=str(folder),
                target_column=None,
                as_frame=True,
                parser="pandas",
                n_retries=1,
                delay=0.1,
            )
    except OSError as error:  # of which URLError is one
        raise UserError(
            f"openml:{what} cannot be loaded ({cause(error)}): "
            f"where there is a network, bench data fetch openml:{what} --data-root DIR"
        ) from None
    about = found.details
    source = f"OpenML's {about['name']}, version {about['version']}, md5 {about['md5_checksum']}"
    return Frames({"": found.frame}, about.get("default_target_attribute"), source)


READERS: dict[str, Callable[[str, Path | None], Frames]] = {
    "csv": read_files(read_csv),
    "parquet": read_files(read_parquet),
    "hf": read_hub,
    "openml": read_openml,
}
