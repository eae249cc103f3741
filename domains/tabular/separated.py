"""CSV files of users: which sign separates columns, and which is the decimal sign."""

import csv
import re
from collections.abc import Collection, Iterable
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING

from contrastbench.domains.reading import UNPACKED, check_doubles
from contrastbench.errors import UserError

if TYPE_CHECKING:
    import pandas

MISSING = ("NaN", "nan", "null", "NULL", "None", "N/A", "n/a", "#N/A", "<NA>", "NaT")
SEPARATORS = (",", ";", "\t")
SNIFFED = 50  # records at the top of a file that tell its separator
COMMA = r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?"
GROUPED = r"[+-]?[1-9]\d{0,2}(,\d{3})*"  # 1,234, which may be decimal or not
CURRENCY = r"[$€£¥]"
THOUSANDS = r"[+-]?\d{1,3}(?:(?:\.\d{3})+,\d+|(?:,\d{3})+\.\d+|(?:[ '’\xa0]\d{3})+(?:[.,]\d+)?)"


def read_csv(path: Path, words: Collection[str] = ()) -> "pandas.DataFrame":
    """Read a CSV file with a header; empty fields, NA and ? are missing.

    Among numbers also NaN, null and the like, which among words may be words.

    Args:
        path: the file.
        words: columns that are words even where all of them look like numbers.

    Raises:
        UserError: two columns have one name, rows have more fields than the header, the file is
            not UTF-8, or the decimal sign is unclear.
    """
    check_unpacked(path)
    try:
        return read_text(path, words)
    except UnicodeDecodeError:
        raise UserError(
            f"{path} cannot be read as a table (it is not UTF-8): save it as UTF-8"
        ) from None


def read_text(path: Path, words: Collection[str]) -> "pandas.DataFrame":
    """Read a CSV file that is UTF-8."""
    import pandas as pd

    sign = separator(path)
    read = partial(pd.read_csv, path, sep=sign, keep_default_na=False, skipinitialspace=True)
    header = read(header=None, nrows=1, dtype=str).iloc[0]
    check_doubles(path, filter(None, header))  # pandas would rename the second
    kept = dict.fromkeys(words, str)
    read = partial(read, na_values=["", "NA", "?"], low_memory=False, dtype=kept)
    frame = read()
    if not isinstance(frame.index, pd.RangeIndex):
        raise UserError(f"{path}: rows have more fields than the header has names: name them all")
    if decimal := decimal_commas(path, frame.drop(columns=[*kept], errors="ignore")):
        frame = read(decimal=",")
        check_points(path, frame, decimal[0])
    frame = frame.apply(
        lambda column: column if column.name in kept else parse_numbers(column, bool(decimal))
    )
    check_bare(path, frame.drop(columns=[*kept], errors="ignore"))
    return frame


def separator(path: Path) -> str:
    """Return the sign that cuts the first records into equally many fields, and into most.

    Where several do, or none does, the suffix of the file tells.
    """
    usual = "\t" if ".tsv" in path.suffixes[-2:] else ","

    def rank(sign: str) -> tuple[bool, int, bool]:
        counts = field_counts(path, sign)
        return len({*counts}) == 1 and counts[0] > 1, max(counts[:1], default=0), sign == usual

    return max(SEPARATORS, key=rank)


def field_counts(path: Path, sign: str) -> list[int]:
    """Return how many fields each of the first records has; none where they cannot be read."""
    from pandas.io.common import get_handle

    with get_handle(path, "r", encoding="utf-8-sig", compression="infer") as handles:
        records = csv.reader(handles.handle, delimiter=sign, skipinitialspace=True)
        try:
            return [len(record) for record in islice(records, SNIFFED) if record]
        except csv.Error:  # a stray quote makes a field without end
            return []


def known_cells(column: "pandas.Series") -> "pandas.Series":
    """Return the values of a column that are not missing."""
    return column[column.notna() & ~column.isin(MISSING)]


def parse_numbers(column: "pandas.Series", commas: bool = False) -> "pandas.Series":
    """Return a column of words as numbers, if all but those for what is missing are numbers.

    Args:
        column: of numbers or of words.
        commas: whether decimal signs are commas.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    filled = known_cells(column)
    if commas:
        filled = filled.astype(str).str.replace(",", ".")
    numbers = pd.to_numeric(filled, errors="coerce")
    return numbers.reindex(column.index) if len(filled) and numbers.notna().all() else column


def decimal_commas(path: Path, frame: "pandas.DataFrame") -> list[str]:
    """Return the columns of numbers whose commas are decimal signs, or at least may be.

    Raises:
        UserError: all of them may as well stand between thousands.
    """
    columns = {
        name: column
        for name, column in texts(frame)
        if all_match(COMMA, column) and column.str.contains(",").any()
    }
    if columns and all(all_match(GROUPED, column) for column in columns.values()):
        name, column = next(iter(columns.items()))
        value = next(text for text in column if "," in text)
        raise UserError(
            f"{path}: column {name} has numbers such as {value!r}, whose comma may be decimal or "
            "stand between thousands: write a point, or no sign"
        )
    return list(columns)


def check_points(path: Path, frame: "pandas.DataFrame", decimal: str) -> None:
    """Raise if a column has decimal points beside one of decimal commas."""
    from pandas.api.types import is_numeric_dtype

    for name, column in texts(frame):
        if is_numeric_dtype(parse_numbers(column)) and column.str.contains(".", regex=False).any():
            raise UserError(
                f"{path}: column {decimal} has decimal commas and column {name} decimal points: "
                "write all numbers alike"
            )


def check_bare(path: Path, frame: "pandas.DataFrame") -> None:
    """Raise if a column of words holds numbers with units or with signs between thousands."""
    plain = r"[+-]?\d+(?:[.,]\d+)?"
    for name, column in texts(frame):
        if not all_match(
            rf"(?:{CURRENCY} ?)?(?:{THOUSANDS}|{plain})(?: ?(?:%|{CURRENCY}))?", column
        ):
            continue
        odd = column[~column.str.fullmatch(plain)]
        if len(odd):
            raise UserError(
                f"{path}: column {name} has numbers such as {odd.iloc[0]!r}, with a unit or a sign "
                "between thousands: write 1234.5"
            )


def texts(frame: "pandas.DataFrame") -> "Iterable[tuple[str, pandas.Series]]":
    """Yield the name of each column of words with those that are not missing."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    for name, column in frame.items():
        filled = known_cells(column)
        if len(filled) and not is_numeric_dtype(column) and not is_bool_dtype(filled):
            yield str(name), filled.astype(str).str.strip()


def all_match(pattern: str, column: "pandas.Series") -> bool:
    """Return whether all texts match; most columns fail at the first."""
    return bool(re.fullmatch(pattern, column.iloc[0]) and column.str.fullmatch(pattern).all())


def check_unpacked(path: Path) -> None:
    """Raise if a packed file, whose few bytes may stand for any number, unpacks to too many."""
    from pandas.io.common import get_handle, infer_compression

    if infer_compression(path, "infer") is None:
        return
    with get_handle(path, "rb", compression="infer", is_text=False) as handles:
        blocks = iter(lambda: handles.handle.read(2**20), b"")
        if any(size > UNPACKED for size in accumulate(map(len, blocks))):
            raise UserError(f"{path} unpacks to more than {UNPACKED / 2**30:.3g} GiB")
