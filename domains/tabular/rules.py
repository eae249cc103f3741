"""Columns of a user's table that are probably not meant as they are, by a table of rules."""

import re
from collections.abc import Callable

import numpy as np

from contrastbench.domains.own import part_name
from contrastbench.domains.reading import is_number
from contrastbench.domains.report import FEW, Rules, look_alikes
from contrastbench.domains.samples import Array
from contrastbench.domains.tabular.table import MAX_FEW_CATEGORIES, TabularSet
from contrastbench.domains.tabular.words import DATES_NOTE, FIRST_DAY, SURE_NUMBERS

IDS = re.compile(r"(?i)(?:.*[_ -])?(?:id|uuid)")
ENDS = {
    *(float(sign * 2**bits - (sign > 0)) for bits in (15, 31, 63) for sign in (-1, 1)),
    *(sign * float(np.finfo(kind).max) for kind in ("float32", "float64") for sign in (-1, 1)),
}  # of types of numbers
SURPRISE = 12.0  # nats; chance makes one of 160,000 columns so
PLACES = re.compile(r"(?i)(?:zip|postal|post|plz|postleitzahl)(?:[ _-]?(?:code|index))?")
Named = Callable[[TabularSet], list[str]]


def numbers_that(test: Callable[[str, Array, TabularSet], object]) -> Named:
    """Return a rule that names the columns of numbers of which something is true."""
    return lambda t: [name for name, column in t.numbers.items() if test(name, column, t)]


def words_that(test: Callable[[Array], object]) -> Named:
    """Return a rule that names the columns of words of which something is true."""
    return lambda t: [name for name, column in t.words.items() if test(column)]


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
    """Return values that probably stand for what is missing, and how often.

    They are the smallest or the largest, there three times or more, and farther from the others
    than those vary. So are nines that are far more often there than any other value, -1 to -9 where
    it alone is negative, and the ends of a type however few.

    >>> holes(np.array([*range(18, 90), 999, 999, 999])), holes(np.array([*range(50), -1, -1, -1]))
    ([(999.0, 3)], [(-1.0, 3)])
    """
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    if len(values) <= MAX_FEW_CATEGORIES // 2:
        return []
    codes = []
    for k in (0, len(values) - 1):
        others, value, text = np.delete(values, k), values[k], f"{values[k]:.15g}"
        coded = np.abs(others - value).min() > np.ptp(others)
        often = counts[k] > FEW * np.delete(counts, k).max()
        coded |= often and bool(re.fullmatch("-?99+", text))
        coded |= bool(re.fullmatch("-[1-9]", text)) and others.min() >= 0
        coded |= value == FIRST_DAY
        if value in ENDS or (counts[k] >= FEW and coded):
            codes.append((float(value), int(counts[k])))
    return codes


def shown(name: str, value: float, table: TabularSet) -> str:
    return str(np.datetime64(int(value), "D") if name in days_of(table) else f"{value:.10g}")


def days_of(table: TabularSet) -> list[str]:
    return [*table.notes.get(DATES_NOTE, ())]


def cut_by_class(column: Array, y: Array) -> bool:
    """Return whether cuts of a column of numbers tell the class of every row.

    >>> y = np.array([0, 0, 1, 1, 1])
    >>> cut_by_class(np.array([3.0, 1, 4, 9, 4]), y), cut_by_class(np.array([3.0, 1, 3, 9, 4]), y)
    (True, False)
    """
    if np.isnan(column).any():
        return False
    order = np.lexsort((y, column))
    changes = np.flatnonzero(np.diff(y[order]))
    return len(changes) == y.max() and bool((np.diff(column[order])[changes] > 0).all())


def tells_class(column: Array, y: Array) -> bool:
    """Return whether cuts tell the class, or values have one class each, no others or many times.

    Holes may be a value or be left out.

    >>> y = np.arange(90) % 6 // 3
    >>> tells_class(np.arange(90) % 6, y), tells_class(np.arange(90) % 7, y), tells_class(y, y)
    (True, False, True)
    """
    numbers = column.dtype != object
    if numbers and (counts_rows(column, y) or cut_by_class(column, y)):
        return not counts_rows(column, y)
    filled = np.isfinite(column) if numbers else column != ""
    return any(map(one_class_each, (column, column[filled]), (y, y[filled])))


def one_class_each(column: Array, y: Array) -> bool:
    _, kinds, counts = np.unique(column, return_inverse=True, return_counts=True)
    _, of_class = np.unique(y, return_counts=True)
    pairs = len({*zip(kinds.tolist(), y.tolist(), strict=True)})
    surprise = (len(y) - len(counts)) * np.log(max(1, len(y)) / of_class.max(initial=1))
    sure = len(counts) == len(of_class) or surprise > SURPRISE
    return len(of_class) > 1 and len(counts) == pairs and bool(sure)


def lies_outside(column: Array, table: TabularSet) -> bool:
    """Return whether most numbers of a test part of its own lie outside those before it."""
    if not table.starts:
        return False
    known, test = (part[np.isfinite(part)] for part in np.split(column, [table.starts[1]]))
    if not (len(known) and len(test)):
        return False
    return bool(((test < known.min()) | (test > known.max())).mean() > 0.5)


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
    x = np.abs(column[np.isfinite(column)])
    return bool(2**53 < x.max(initial=0) < 1e20 and (x == x.round()).all())


DOUBTS: Rules[TabularSet] = {
    "columns that tell the class, by values or by cuts: drop, or give one as recipe groups": (
        lambda t: [
            name
            for name, column in {**t.columns, **t.dropped}.items()
            if tells_class(column, t.y)
            and (name in t.columns or len(t.classes) < len({*column}) <= len(column) / 2)
        ]
    ),
    "columns that number the rows, or sort them by class": numbers_that(
        lambda _, column, t: counts_rows(column, t.y)
    ),
    "columns that number samples by their names: leave them out by drop": numbers_that(
        lambda name, column, t: IDS.fullmatch(name) and not counts_rows(column, t.y)
    ),
    "columns of numbers mostly unlike those of training, perhaps of another unit": numbers_that(
        lambda _, column, t: lies_outside(column, t)
    ),
    "columns of numbers kept as texts, read as words: save them as numbers": words_that(
        lambda column: len({*column}) > SURE_NUMBERS and all(map(is_number, {*column} - {""}))
    ),
    "rows in the order of time, of which any are drawn to be tested": numbers_that(
        lambda name, x, t: name in days_of(t) and not t.starts and (np.diff(x) >= 0).all()
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
        f"{name} {shown(name, value, t)} ({count} times)"
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
