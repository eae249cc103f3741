"""A table of rows with a class each, and what its columns are."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from contrastbench.domains.samples import Array

MISSING = ("NaN", "nan", "null", "NULL", "None", "N/A", "n/a", "n.a.", "#N/A", "<NA>", "NaT")
MAX_FEW_CATEGORIES = 20  # different words, which may be categories of a small table
NEAR_DIGITS = 6  # of a number, that nearly equal ones share
Starts = tuple[int | None, int]  # of the validation and the test rows; None: the seed draws them


@dataclass(frozen=True)
class TabularSet:
    """Rows of numeric and of categorical columns, with a class each."""

    numeric: Array  # (rows, columns) floats, nan where missing
    categorical: Array  # (rows, columns) strings, "" where missing
    names: tuple[str, ...]  # of the numeric and then of the categorical columns
    y: Array  # (rows,) classes 0, 1, ...
    classes: tuple[str, ...]
    starts: Starts | None = None  # None: the seed draws all three parts
    notes: dict[str, Any] = field(default_factory=dict)  # what reading left out
    doubts: dict[str, Any] = field(default_factory=dict)  # what is probably not as meant
    dropped: dict[str, Array] = field(default_factory=dict)  # columns that are no features
    groups: Sequence[str] | Array = ()  # of each row, such as its patient; kept whole

    def __len__(self) -> int:
        return len(self.y)

    @property
    def numbers(self) -> dict[str, Array]:
        return dict(zip(self.names, self.numeric.T, strict=False))

    @property
    def words(self) -> dict[str, Array]:
        return dict(zip(self.names[self.numeric.shape[1] :], self.categorical.T, strict=True))

    @property
    def columns(self) -> dict[str, Array]:
        return self.numbers | self.words

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        shape = (self.numeric.shape, self.names, self.classes, self.starts)
        digest.update(repr(shape).encode())
        digest.update(np.ascontiguousarray(self.numeric).data)
        digest.update(np.ascontiguousarray(self.y.astype(np.int64)).data)
        digest.update("\x1f".join(self.categorical.ravel()).encode())
        digest.update("\x1f".join(self.groups).encode())
        return digest.hexdigest()

    def near_keys(self, rows: Array) -> list[bytes]:
        """Return a digest of each of some rows, the same where numbers agree in six digits.

        They are digits of what the middle half of a column varies by: a time is no constant.
        """
        filled = np.nan_to_num(self.numeric[rows], posinf=0.0, neginf=0.0)
        low, high = np.quantile(filled, (0.25, 0.75), axis=0) if self.numbers else ((), ())
        spread = np.subtract(high, low)
        rounded = (self.numeric / np.where(spread > 0, spread, 1)).round(NEAR_DIGITS)
        return replace(self, numeric=rounded).keys(rows)

    def keys(self, rows: Array) -> list[bytes]:
        numbers = np.ascontiguousarray(self.numeric[rows]) + 0.0  # -0 equals 0
        words = map("\x1f".join, self.categorical[rows])
        pairs = zip(numbers, words, strict=True)
        return [hashlib.blake2b(x.tobytes() + word.encode()).digest() for x, word in pairs]


class Roles(NamedTuple):
    """The columns of a user's table that are no features."""

    target: str | None = None  # the column of classes
    split: str | None = None  # the column that says which row is whose
    drop: tuple[str, ...] = ()  # columns that are left out
    groups: str | None = None  # the column of groups that are kept whole
    lenient: bool = False  # whether a column that is split by or left out may not be there
