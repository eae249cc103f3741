"""Dates in users' tables, which become numbers: days since 1970, in UTC."""

import re
from typing import TYPE_CHECKING

from contrastbench.domains.reading import refuse
from contrastbench.domains.tabular.separated import known_cells
from contrastbench.domains.tabular.table import drop_option

if TYPE_CHECKING:
    import pandas

DATES_NOTE = "columns of dates, read as days since 1970"
ISO = re.compile(r"\d{4}-\d\d-\d\d")
OTHER = re.compile(  # dates whose order of day and month a reader would have to guess
    r"(?:\d{1,2}([./ -])(?:\d{1,2}|[A-Za-z]{3,9})\1\d{4}"
    r"|[A-Za-z]{3,9} \d{1,2}, \d{4}|\d{4}/\d\d?/\d\d?)\b"
)
DATE_SHARE = 0.9  # of a column; where so many values are dates, the others are mistakes


def with_days(
    name: str, frame: "pandas.DataFrame", but: str
) -> "tuple[pandas.DataFrame, dict[str, list[str]]]":
    """Return a table whose columns of dates are days since 1970, and a note that names them.

    Args:
        name: of the table.
        frame: its columns.
        but: the column of classes, which stays as it is.

    Raises:
        UserError: dates are not written as 2020-12-31, or some values of a column are none.
    """
    found = {column: days(name, frame[column]) for column in frame if column != but}
    dates = {column: numbers for column, numbers in found.items() if numbers is not None}
    return frame.assign(**dates), {DATES_NOTE: [*dates]} if dates else {}


def days(name: str, column: "pandas.Series") -> "pandas.Series | None":
    """Return a column of dates as days since 1970, the time of day a fraction; None: others."""
    import pandas as pd
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

    if is_numeric_dtype(column):
        return None
    filled, what = known_cells(column), f"{name}: column {column.name} has dates"
    fix = f"write 2020-12-31, or give {drop_option([str(column.name)])}"
    if not is_datetime64_any_dtype(column):
        filled = filled.astype(str).str.strip()
        other_form = filled.str.match(OTHER).mean() > DATE_SHARE
        refuse(what, ([*map(repr, filled[:1])] if other_form else (), f" such as {{}}: {fix}"))
        if not filled.str.match(ISO).mean() > DATE_SHARE:
            return None
    times = pd.to_datetime(filled, format="ISO8601", utc=True, errors="coerce")
    others = [*map(repr, filled[times.isna()])]
    refuse(what, (others, f", and {{}}, which is none: {fix}"))
    numbers = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return numbers.reindex(column.index)
