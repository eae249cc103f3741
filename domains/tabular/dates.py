"""Dates in users' tables, which become numbers: days since 1970, in UTC."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from contrastbench.domains.reading import refuse
from contrastbench.domains.tabular.separated import known_cells, with_columns
from contrastbench.domains.tabular.table import drop_option

if TYPE_CHECKING:
    import pandas

DATES_NOTE = "columns of dates, read as days since 1970"
FIRST_DAY = -25567.0  # 1900-01-01, the first that many programs know
ISO = re.compile(r"\d{4}-\d\d-\d\d")
OTHER = re.compile(  # dates whose order of day and month a reader would have to guess
    r"(?:\d{1,2}([./ -])(?:\d{1,2}|[A-Za-z]{3,9})\1\d{4}"
    r"|[A-Za-z]{3,9} \d{1,2}, \d{4}|\d{4}/\d\d?/\d\d?"
    r"|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}[-/ .]\d{2,4})(?!\w)"
)
YEARS = (1678, 2261)  # whole ones that pandas has in nanoseconds
DATE_SHARE = 0.9  # of a column; where so many values are dates, the others are mistakes


def with_days(
    name: str, frame: "pandas.DataFrame", but: str, place: Callable[[Any], str] = "row {}".format
) -> "tuple[pandas.DataFrame, dict[str, list[str]]]":
    """Return a table whose columns of dates are days since 1970, and a note that names them.

    The column of classes stays as it is; `place` says where a row stands, by its index.
    """
    found = {column: days(name, frame[column], place) for column in frame if column != but}
    dates = {column: numbers for column, numbers in found.items() if numbers is not None}
    return with_columns(frame, dates), {DATES_NOTE: [*dates]} if dates else {}


def days(name: str, column: "pandas.Series", place: Callable[[Any], str]) -> "pandas.Series | None":
    """Return a column of dates as days since 1970, the time of day a fraction; None: others."""
    import pandas as pd
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

    if is_numeric_dtype(column):
        return None
    filled, fix = known_cells(column), f"or give {drop_option([str(column.name)])}"

    def check(odd: "pandas.Series", fault: str) -> None:
        first = [(place(row), repr(word)) for row, word in odd.iloc[:1].items()]
        refuse(name, (first, f" {{}}: column {column.name} has dates{fault}"))

    if not is_datetime64_any_dtype(column):
        filled = filled.astype(str).str.strip()
        if filled.str.match(OTHER).mean() > DATE_SHARE:
            check(filled, f" such as {{}}: write 2020-12-31, {fix}")
        iso = filled[filled.str.match(ISO)]
        if not len(iso) > DATE_SHARE * len(filled):
            return None
        far = ~iso.str[:4].astype(int).between(*YEARS)
        check(iso[far], ", and {}: leave it empty if it stands for what is missing")
    times = pd.to_datetime(filled, format="ISO8601", utc=True, errors="coerce")
    check(filled[times.isna()], f", and {{}}, which is none: write 2020-12-31, {fix}")
    numbers = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return numbers.reindex(column.index)
