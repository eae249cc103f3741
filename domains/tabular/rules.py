"""Columns of a user's table that are probably not meant as they are, by a table of rules."""

import re
from collections.abc import Callable

import numpy as np

from contrastbench.domains.own import part_name
from contrastbench.domains.report import FEW, Rules, look_alikes
from contrastbench.domains.samples import Array
from contrastbench.domains.tabular.table import MAX_FEW_CATEGORIES, TabularSet

IDS = re.compile(r"(?i)(?:.*[_ -])?(?:id|uuid)")
PLACES = re.compile(r"(?i)(?:zip|postal|post|plz|postleitzahl)(?:[ _-]?(?:code|index))?")
Named = Callable[[TabularSet], list[str]]


def numbers_that(test: Callable[[str, Array, TabularSet], object]) -> Named:
    """Return a rule that names the columns of numbers of which something is true."""
    return lambda t: [name for name, column in t.numbers.items() if test(name, column, t)]


def words_that(test: Callable[[Array], object]) -> Named:
    """Return a rule that names the columns of words of which something is true."""
    return lambda t: [name for name, column in t.words.items() if test(column)]


def renames(column: Array, table: TabularSet) -> bool:
    """Return whether a column has one value for each class; holes may be a value or be left out."""
    import pandas as pd

    pairs = pd.DataFrame({"x": column, "y": table.y}).drop_duplicates()
    filled = pairs[pairs.x.notna() & (pairs.x != "")]
    return any(
        len(some) == some.x.nunique(dropna=False) == some.y.nunique() == len(table.classes)
        for some in (pairs, filled)
    )


def counts_rows(column: Array, y: Array) -> bool:
    """Return whether whole numbers count the rows, or each class has a range of its own.

    >>> counts_rows(np.array([3.0, 1.0, 2.0]), np.array([1, 0, 1]))
    True
    """
    if not np.array_equal(column, np.round(column)) or len(np.unique(column)) < len(column):
        return False
    changes = np.count_nonzero(np.diff(y[np.argsort(column)]))
    return bool(changes == y.max() or np.ptp(column) == len(column) - 1)


def holes(column: Array) -> list[tuple[float, int]]:
    """Return values of nines, or minus them, that stand apart from all others, and how often.

    They are there three times or more, and farther from the others than those vary, or far more
    often. So is -1 to -9 where it alone is negative.

    >>> holes(np.array([*range(18, 90), 999, 999, 999])), holes(np.array([*range(50), -1, -1, -1]))
    ([(999.0, 3)], [(-1.0, 3)])
    """
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    if len(values) <= MAX_FEW_CATEGORIES // 2:
        return []
    codes = []
    for k in (0, len(values) - 1):
        others, value, text = np.delete(values, k), values[k], f"{values[k]:.15g}"
        apart = np.abs(others - value).min() > np.ptp(others)
        often = counts[k] > FEW * np.delete(counts, k).max()
        coded = bool(re.fullmatch("-?99+", text)) and (apart or often)
        coded |= bool(re.fullmatch("-[1-9]", text)) and others.min() >= 0
        if counts[k] >= FEW and coded:
            codes.append((float(value), int(counts[k])))
    return codes


def plain_dates(column: Array) -> bool:
    """Return whether all numbers are dates such as 20201231.

    >>> plain_dates(np.array([20201231.0, np.nan])), plain_dates(np.array([20201331.0]))
    (True, False)
    """
    x = column[np.isfinite(column)]
    months, days, whole = x // 100 % 100, x % 100, x == x.round()
    dates = (x >= 19e6) & (x < 21e6) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return bool(len(x) and (dates & whole).all())


def are_long(column: Array) -> bool:
    """Return whether all numbers are whole, and one is too long for a float."""
    x = np.abs(column[np.isfinite(column)])
    return bool(2**53 < x.max(initial=0) < 1e20 and (x == x.round()).all())


DOUBTS: Rules[TabularSet] = {
    "columns that tell the class, one value for each": lambda t: [
        name for name, column in t.columns.items() if renames(column, t)
    ],
    "columns that number the rows, or sort them by class": numbers_that(
        lambda _, column, t: counts_rows(column, t.y)
    ),
    "columns that number samples by their names: leave them out by drop": numbers_that(
        lambda name, column, t: IDS.fullmatch(name) and not counts_rows(column, t.y)
    ),
    "columns that say train or test: give recipe split, or drop": words_that(
        lambda column: {"train", "test"} <= {*map(part_name, column)}
    ),
    "columns of texts with line breaks, perhaps by a stray quote": words_that(
        lambda column: any("\n" in text for text in column)
    ),
    "columns of codes of places, read as numbers: a letter before each makes them categories": (
        numbers_that(lambda name, *_: PLACES.fullmatch(name))
    ),
    "numbers that may stand for what is missing: leave it empty": lambda t: [
        f"{name} {value:g} ({count} times)"
        for name, column in t.numbers.items()
        for value, count in holes(column)
    ],
    "dates without signs between, read as numbers: write 2020-12-31": numbers_that(
        lambda _, column, __: plain_dates(column)
    ),
    "whole numbers of 16 to 20 digits, which are rounded: a letter before makes them words": (
        numbers_that(lambda _, column, __: are_long(column))
    ),
    "columns whose words look alike": words_that(lambda column: look_alikes({*column})),
}
