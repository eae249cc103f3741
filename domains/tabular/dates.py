"""Dates in users' tables, which become numbers: days since 1970, in UTC."""

import re
from typing import TYPE_CHECKING

from contrastbench.domains.tabular.separated import known_cells
from contrastbench.domains.tabular.table import drop_option
from contrastbench.errors import UserError

if TYPE_CHECKING:
    import pandas

DATES_NOTE = "columns of dates, read as days since 1970"
DAYS = (
    *("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMS = ("ISO8601", *(day + time for day in DAYS for time in TIMES))
DATE_LIKE = r"(?=.*\d{4})(?=.*\D).{8,40}"  # of a date: a year, and something besides digits
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
        UserError: day and month of a column are unclear, or some of its values are no dates.
    """
    found = {column: days(name, frame[column]) for column in frame if column != but}
    dates = {column: numbers for column, numbers in found.items() if numbers is not None}
    return frame.assign(**dates), {DATES_NOTE: [*dates]} if dates else {}


def days(name: str, column: "pandas.Series") -> "pandas.Series | None":
    """Return a column of dates as days since 1970, the time of day a fraction; None: others."""
    import pandas as pd
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

    if is_datetime64_any_dtype(column):
        return since_1970(pd.to_datetime(column, utc=True))
    if is_numeric_dtype(column):
        return None
    filled = known_cells(column).astype(str).str.strip()
    if not len(filled) or not re.fullmatch(DATE_LIKE, filled.iloc[0]):
        return None
    readings = [
        parse_dates(filled, form) for form in FORMS if parse_dates(filled[:1], form).notna().all()
    ]
    whole = [numbers for numbers in readings if numbers.notna().all()]
    if not whole:
        check_others(name, filled, readings)
        return None
    check_clear(name, filled, whole)
    return whole[0].reindex(column.index)


def parse_dates(filled: "pandas.Series", form: str) -> "pandas.Series":
    """Return texts as days since 1970; a hole for each that is no date of that form."""
    import pandas as pd

    return since_1970(pd.to_datetime(filled, format=form, utc=True, errors="coerce"))


def since_1970(times: "pandas.Series") -> "pandas.Series":
    """Return times as days."""
    import pandas as pd

    return (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)


def check_others(name: str, filled: "pandas.Series", readings: "list[pandas.Series]") -> None:
    """Raise if nearly all texts are dates of one form."""
    for numbers in readings:
        if numbers.notna().mean() > DATE_SHARE:
            other = filled[numbers.isna()].iloc[0]
            raise UserError(
                f"{name}: column {filled.name} has dates, and {other!r}, which is no date in "
                f"their form: correct it, or give {drop_option([str(filled.name)])}"
            )


def check_clear(name: str, filled: "pandas.Series", readings: "list[pandas.Series]") -> None:
    """Raise if two forms give different dates."""
    if any(not numbers.equals(readings[0]) for numbers in readings):
        raise UserError(
            f"{name}: column {filled.name} has dates such as {filled.iloc[0]!r}, whose day and "
            f"month are unclear: write 2020-12-31, or give {drop_option([str(filled.name)])}"
        )
