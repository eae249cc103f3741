"""CSV files of users: which sign separates columns, and which is the decimal sign."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import IO, Any

import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from pandas.io.common import get_handle, infer_compression

from contrastbench.domains.reading import UNPACKED, check_doubles, check_kind, is_number, refuse
from contrastbench.domains.samples import Counted
from contrastbench.domains.tabular.table import MISSING

SEPARATORS = (",", ";", "\t", "|")
SNIFFED = 50  # records at the top of a file that tell its separator
ORANGE = {"continuous", "discrete", "string", "time", "nan"}
MINUS = "[\u2212\u2013]"  # as word processors write it
MINUS_NOTE = "numbers with a long minus sign, read as -"
ZEROS_NOTE = "numbers that begin with zeros or +, as codes do: a letter before keeps them"
CODE = r"0\d{3,}|\+\d{7,}"
SIGNED = r"[+-]?\d+([{}]\d+)?([eE][+-]?\d+)?"  # with a decimal sign, perhaps
GROUPED = r"[+-]?[1-9]\d{{0,2}}({}\d{{3}})*"  # 1,234, which may be decimal or not


def read_csv(path: Path, words: Collection[str] = ()) -> DataFrame:
    """Read a CSV file with a header; empty fields, NA and ? are missing.

    Among numbers also NaN, null and the like, which among words may be words. `attrs` has notes.
    Columns may be told to be words even where all of them look like numbers.
    """
    if not check_unpacked(path):
        check_kind(path, "a table of text", "save it as CSV")
    try:
        return read_text(path, words)
    except UnicodeDecodeError:
        refuse(path, (True, " cannot be read as a table (it is not UTF-8): save it as UTF-8"))
        raise


def read_text(path: Path, words: Collection[str]) -> DataFrame:
    sign, above = separator(path)
    read = partial(pd.read_csv, path, sep=sign, skiprows=above, keep_default_na=False)
    read = partial(read, skipinitialspace=True)
    header = read(header=None, nrows=1, dtype=str).iloc[0]
    check_header(path, [*filter(None, header)])
    longer = max(field_counts(path, sign)[above:], default=0) > len(header)
    fix = "name them all, or remove the lines above the header"
    refuse(path, (longer, f": rows have more fields than the header has names: {fix}"))
    kept = dict.fromkeys(words, str)
    read = partial(read, na_values=["", "NA", "?"], low_memory=False, dtype=kept)
    frame = read()
    types = {*map(str, frame.head(1).to_numpy().ravel())}
    named = types & {"continuous", "discrete"} and types <= ORANGE
    refuse(path, (named, " line 2 has types of columns, as Orange has: remove it and line 3"))
    if frame.iloc[:, -1].isna().any():
        check_fields(path, len(frame.columns))
    if sign == ";":
        fix = "write commas between columns if it is decimal, or no sign"
        check_clear(path, decimals(read(dtype=str), "."), ".", fix)
    decimal = decimals(frame.drop(columns=[*kept], errors="ignore"), ",")
    check_clear(path, decimal, ",", "write a point, or no sign")
    if decimal:
        frame = read(decimal=",")
        check_points(path, frame, next(iter(decimal)))
    parsed = {name: parse_numbers(frame[name], bool(decimal)) for name in frame if name not in kept}
    notes: dict[str, Any] = minus_note(frame, parsed)
    frame = with_columns(frame, parsed)
    notes |= zeros_note(frame, read(dtype=str, nrows=SNIFFED))
    frame.attrs["notes"] = notes
    return frame


def with_columns(frame: DataFrame, columns: Mapping[str, Series] | DataFrame) -> DataFrame:
    """Return a table with other columns; `assign` has no name for one called self."""
    made = frame.copy(deep=False)
    for name, column in columns.items():
        made[name] = column
    return made


def check_header(path: Path, names: list[str]) -> None:
    """Raise if two names are equal, of which pandas would rename one, or names are numbers.

    Columns may be counted or years: 0, 1, 2 or 1990, 1991.
    """
    numbers = [n for n in names if is_number(n) and re.search("[0-9]", n) and not n.isdecimal()]
    if len(names) > 1 and all(map(str.isdecimal, names)):
        numbers += names * ({int(b) - int(a) for a, b in pairwise(names)} != {1})
    refuse(path, (numbers, ": line 1 has numbers in place of names: write a header above it"))
    check_doubles(path, names)


def minus_note(frame: DataFrame, parsed: dict[str, Series]) -> dict[str, Counted]:
    places = [
        f"column {name}, row {row + 1}"
        for name, column in texts(frame)
        if name in parsed and parsed[name].dtype != object
        for row in column.index[column.str.contains(MINUS)]
    ]
    return {MINUS_NOTE: Counted.of(places)} if places else {}


def zeros_note(frame: DataFrame, head: DataFrame) -> dict[str, list[str]]:
    begun = [
        str(name)
        for name in frame
        if is_numeric_dtype(frame[name]) and head[name].str.fullmatch(CODE).any()
    ]
    return {ZEROS_NOTE: begun} if begun else {}


def separator(path: Path) -> tuple[str, int]:
    """Return the sign between fields, and how many lines stand above the header.

    It is the sign that cuts the first records into equally many fields, and into most; where
    several do, or none does, the suffix of the file tells. Excel may write `sep=;` above.
    """
    with opened(path) as file:
        named = re.fullmatch("(?i)sep=(.)\n?", file.readline(10))
    if named:
        return named[1], 1
    usual = "\t" if ".tsv" in path.suffixes[-2:] else ","

    def rank(sign: str) -> tuple[bool, int, bool]:
        counts = field_counts(path, sign)
        return len({*counts}) == 1 and counts[0] > 1, max(counts[:1], default=0), sign == usual

    return max(SEPARATORS, key=rank), 0


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    with get_handle(path, "r", encoding="utf-8-sig", compression="infer") as handles:
        yield handles.handle


def records(path: Path, sign: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the number of its last line; pandas passes over empty lines too."""
    with opened(path) as file:
        reader = csv.reader(file, delimiter=sign, skipinitialspace=True)
        yield from ((reader.line_num, fields) for fields in reader if fields)


def field_counts(path: Path, sign: str) -> list[int]:
    """Return how many fields each of the first records has; none where they cannot be read."""
    try:
        return [len(fields) for _, fields in islice(records(path, sign), SNIFFED)]
    except csv.Error:  # a stray quote makes a field without end
        return []


def check_fields(path: Path, names: int) -> None:
    """Raise if a record has fewer fields than the header, as the sum below a table has."""
    sign, above = separator(path)
    few = (pair for pair in islice(records(path, sign), above, None) if len(pair[1]) < names)
    cut = [(line, len(fields)) for line, fields in islice(few, 1)]
    refuse(path, (cut, f" line {{}} has {{}} of {names} fields: fill or remove it"))


def line_of(path: Path, row: int) -> int:
    sign, above = separator(path)
    line, _ = next(islice(records(path, sign), above + 1 + row, None))
    return line


def known_cells(column: Series) -> Series:
    return column[column.notna() & ~column.isin(MISSING)]


def parse_numbers(column: Series, commas: bool = False) -> Series:
    """Return a column of words as numbers, if all but those for what is missing are numbers."""
    if is_numeric_dtype(column):
        return column
    numbers = as_numbers(known_cells(column), commas)
    return numbers.reindex(column.index) if len(numbers) and numbers.notna().all() else column


def as_numbers(filled: Series, commas: bool = False) -> Series:
    """Return texts as numbers; a hole for each that is none."""
    filled = filled.map(lambda x: re.sub(MINUS, "-", x.strip()) if isinstance(x, str) else x)
    if commas:
        filled = filled.astype(str).str.replace(",", ".")
    return pd.to_numeric(filled, errors="coerce")


def decimals(frame: DataFrame, sign: str) -> dict[str, Series]:
    """Return the columns of numbers with a sign that is decimal, or at least may be."""
    return {
        name: column
        for name, column in texts(frame)
        if all_match(SIGNED.format(sign), column) and column.str.contains(sign, regex=False).any()
    }


def check_clear(path: Path, columns: dict[str, Series], sign: str, fix: str) -> None:
    if not columns or not all(all_match(GROUPED.format(f"[{sign}]"), c) for c in columns.values()):
        return
    called = {",": "comma", ".": "point"}[sign]
    values = [(name, repr(v)) for name, column in columns.items() for v in column if sign in v]
    fault = f"whose {called} may be decimal or stand between thousands: {fix}"
    refuse(path, (values, f": column {{}} has numbers such as {{}}, {fault}"))


def check_points(path: Path, frame: DataFrame, decimal: str) -> None:
    pointed = [
        name
        for name, column in texts(frame)
        if is_numeric_dtype(parse_numbers(column)) and column.str.contains(".", regex=False).any()
    ]
    both = f"column {decimal} has decimal commas and column {{}} decimal points"
    refuse(path, (pointed, f": {both}: write all numbers alike"))


def texts(frame: DataFrame) -> Iterable[tuple[str, Series]]:
    """Yield the name of each column of words with those that are not missing."""
    for name, column in frame.items():
        filled = known_cells(column)
        if len(filled) and not is_numeric_dtype(column) and not is_bool_dtype(filled):
            yield str(name), filled.astype(str).str.strip()


def all_match(pattern: str, column: Series) -> bool:
    """Return whether all texts match; most columns fail at the first."""
    return bool(re.fullmatch(pattern, column.iloc[0]) and column.str.fullmatch(pattern).all())


def check_unpacked(path: Path) -> bool:
    """Return whether a file is packed; its few bytes may not unpack to too many."""
    if infer_compression(path, "infer") is None:
        return False
    with get_handle(path, "rb", compression="infer", is_text=False) as handles:
        blocks = iter(lambda: handles.handle.read(2**20), b"")
        large = any(size > UNPACKED for size in accumulate(map(len, blocks)))
    refuse(path, (large, f" unpacks to more than {UNPACKED / 2**30:.3g} GiB"))
    return True
