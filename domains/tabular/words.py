"""Columns of words that were meant as dates, which become days, or numbers, which are refused."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from contrastbench.domains.reading import refuse
from contrastbench.domains.tabular.frames import column_array, drop_option, plain_floats
from contrastbench.domains.tabular.separated import as_numbers, known_cells, texts, with_columns
from contrastbench.errors import UserError

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
NUMBER = r"[+\u2212\u2013-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?"
THOUSANDS = (
    r"[+\u2212\u2013-]?\d{1,3}(?:(?:\.\d{3})+,\d+|(?:,\d{3})+\.\d+|(?:\.\d{3}){2,}|(?:,\d{3}){2,}"
    r"|(?:[ '’\xa0\u202f]\d{3})+(?:[.,]\d+)?)"
)
SIGN = r"(?:[$€£¥₹]|[A-Z]{3})"  # of money
MONEY = rf"[+\u2212\u2013-]?(?:{SIGN} ?)?(?:{THOUSANDS}|{NUMBER})(?: ?(?:%|{SIGN}))?"
FORMS = {  # of numbers that are not read, and how to write them
    NUMBER: "with a decimal comma beside decimal points: write all alike",
    MONEY: "with a unit or a sign between thousands: write 1234.5",
    rf"{NUMBER}-": "with its minus behind: write it before",
    rf"\({MONEY}\)": "in brackets, which may be negative: write a minus",
    r"(?:\d+ days?,? )?-?\d+:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?": "of time: write seconds or hours",
    r"-?P(?:\d+D)?(?:T(?:[\d.]+[HMS]){1,3})?": "of time: write seconds or hours",
    rf"[<>≤≥~≈] ?{NUMBER}": "that is a bound: write the number, or leave it empty",
    rf"'{NUMBER}|=\"{NUMBER}\"": "as Excel keeps texts: write 12.5",
    rf"{NUMBER} ?[*†‡^]+": "with a mark behind: write the number alone",
    r"[+-]?(?:\d+[.]?\d*|[.]\d+)[dD][+-]?\d+": "with D for its exponent: write 1.2E-3",
    r"[+-]?\d+(?:[.,٫]\d+)?": "in digits other than 0 to 9: write 12.5",
}
ANY_FORM = re.compile("|".join(FORMS))
SHAPED = r"0[xX][0-9a-fA-F]+|[0-9]+(?:[.,][0-9]+)*"  # what differs in texts of one shape
NO_CODE = r"[\W\d_].*\d|\d"  # begins with no letter, as codes such as A12 do
SHAPES_FIX = "write 12.5, a column for each, dates as 2020-12-31, and a letter before codes"
UNIT = r" ?[^\W\d_]{1,6}[²³]?"  # letters behind a number
UNITS = re.compile(rf"{NUMBER}(?:{UNIT}(?: ?\d+{UNIT}){{0,2}})?")
MAX_UNITS = 3  # of one column, or shapes of its texts; more are letters of codes
MANY_NUMBERS = 10  # different ones; fewer may be names of categories
SURE_NUMBERS = 20  # different ones, among which few different words are no categories
STRAY_SHARE = 0.1  # of a column's values; fewer words than that stand among numbers


def with_days(
    name: str, frame: DataFrame, but: str, place: Callable[[Any], str] = "row {}".format
) -> tuple[DataFrame, dict[str, list[str]]]:
    """Return a table whose columns of dates are days since 1970, and a note that names them.

    The column of classes stays as it is; `place` says where a row stands, by its index.
    """
    found = {column: days(name, frame[column], place) for column in frame if column != but}
    dates = {column: numbers for column, numbers in found.items() if numbers is not None}
    return with_columns(frame, dates), {DATES_NOTE: [*dates]} if dates else {}


def days(name: str, column: Series, place: Callable[[Any], str]) -> Series | None:
    """Return a column of dates as days since 1970, the time of day a fraction; None: others."""
    if is_numeric_dtype(column):
        return None
    filled, fix = known_cells(column), f"or give {drop_option([str(column.name)])}"

    def check(odd: Series, fault: str) -> None:
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


def check_words(name: str, frame: DataFrame, place: Callable[[int], str]) -> None:
    """Raise if a column has infinity, numbers in a form that is not read, or a few words."""
    for column, values in frame.items():
        infinite = values.index[np.isin(column_array(values), [np.inf, -np.inf])].tolist()
        fault = f"column {column} has an infinite value: leave it empty if it is missing"
        refuse(f"{name} ", ([*map(place, infinite[:1])], f"{{}}: {fault}"))
    for column, filled in texts(frame.apply(plain_floats)):
        distinct = filled.drop_duplicates()
        if odd := unread_number(distinct) or stray_word(filled, distinct):
            row, fault = odd
            fault = f"column {column} has {filled[row][:40]!r} {fault}"
            raise UserError(f"{name} {place(int(row))}: {fault}")


def unread_number(distinct: Series) -> tuple[int, str] | None:
    """Return the first text of a column of numbers that is not read as one, and what it is."""
    if all(map(ANY_FORM.fullmatch, distinct)):
        odd = distinct[as_numbers(distinct).isna()]
        forms = [FORMS[form] for text in odd[:1] for form in FORMS if re.fullmatch(form, text)]
        return (odd.index[0], forms[0]) if forms else None  # none: words by their type
    if all(map(UNITS.fullmatch, distinct)) and len(distinct) >= MANY_NUMBERS:
        units = distinct.str.replace(NUMBER, " ", regex=True).str.strip()
        if len({*" ".join(units).lower().split()}) <= MAX_UNITS:
            few = "; or, if it is a code, a letter before each" * bool((units == "").mean() > 0.5)
            return units.index[units != ""][0], f"with a unit: write the number alone{few}"
    odd = distinct[~distinct.str.fullmatch(NUMBER)]
    shapes = distinct.str.replace(SHAPED, "", regex=True).nunique()
    many = len(odd) >= max(SURE_NUMBERS, len(distinct) / 2)
    if many and shapes <= MAX_UNITS and distinct.str.match(NO_CODE).all():
        return odd.index[0], "of several numbers, or a code: " + SHAPES_FIX
    return None


def stray_word(filled: Series, distinct: Series) -> tuple[int, str] | None:
    """Return the first word that stands among numbers, where it is no name of a category."""
    like = distinct.map(lambda text: bool(ANY_FORM.fullmatch(text)))
    words, numbers = distinct[~like], int(like.sum())
    count = int(filled.isin([*words]).sum())
    few = count <= STRAY_SHARE * len(filled) and (numbers >= MANY_NUMBERS or count == 1)
    if numbers and len(words) and (few or (numbers >= SURE_NUMBERS and len(words) <= MAX_UNITS)):
        return words.index[0], "among numbers: write a number, or leave it empty"
    return None
