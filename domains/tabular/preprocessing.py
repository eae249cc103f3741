"""Splits, and columns made into numbers with statistics of the training rows alone."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import TypeAdapter
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from contrastbench.domains.reading import reading, refuse
from contrastbench.domains.samples import Array, draw_share
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.tabular.table import MISSING, TabularSet
from contrastbench.errors import UserError

MAX_CATEGORIES = 100  # of a column; the rarest share the last input
TRUTH = {"True": 1.0, "False": 0.0}
NUMBERS_OF_TRUTH = {"1": "True", "0": "False"}
TESTED = 0.2  # share of the rows that the seed draws for the test part


@dataclass(frozen=True)
class Numbers:
    """A column of numbers: missing ones as the median, scaled to mean 0 and variance 1."""

    median: float
    mean: float
    std: float  # 0: the column is constant or empty, and is no input

    @property
    def width(self) -> int:
        return 1 if self.std else 0

    def encode(self, name: str, column: Array) -> Array:
        """(rows, 1) the scaled numbers."""
        x = as_numbers(name, column)
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused later
            return ((np.where(np.isnan(x), self.median, x) - self.mean) / self.std)[:, None]


@dataclass(frozen=True)
class Categories:
    """A column of words, one-hot; one category alone is no input."""

    categories: tuple[str, ...]
    rare: tuple[str, ...]  # they and unseen ones share the last input; else these have none

    @property
    def width(self) -> int:
        width = len(self.categories) + bool(self.rare)
        return width if width > 1 else 0

    def encode(self, name: str, column: Array) -> Array:
        """(rows, width) zeros, and a one for each row's category."""
        place = {category: k for k, category in enumerate(self.categories)}
        numbers = np.array([place.get(word, len(place)) for word in self.words(column)], dtype=int)
        return np.eye(len(place) + 1, dtype=np.float32)[numbers][:, : self.width]

    def unseen(self, column: Array) -> list[str]:
        """Return the words that are no category, a word for each row that has one."""
        known = {*self.categories, *self.rare}
        return [word for word in self.words(column) if word not in known]

    def words(self, column: Array) -> list[str]:
        """Return a column as words: whole numbers have no point, and what is missing is empty.

        True and False without a hole beside them are numbers.
        """
        if column.dtype == object:
            return column.tolist()
        numbers = column.tolist()
        words = ["" if np.isnan(x) else str(int(x) if x == int(x) else x) for x in numbers]
        of_truth = NUMBERS_OF_TRUTH if TRUTH.keys() & {*self.categories} else {}
        return [of_truth.get(word, word) for word in words]


TabularColumn = Numbers | Categories


@dataclass(frozen=True)
class Columns:
    """The columns of a table that an encoder is trained on, by name."""

    by_name: Mapping[str, TabularColumn]

    @property
    def used(self) -> dict[str, TabularColumn]:
        return {name: column for name, column in self.by_name.items() if column.width}

    @property
    def feature_of(self) -> list[int]:
        """Return for each input the number of its column among those that are used."""
        return [k for k, column in enumerate(self.used.values()) for _ in range(column.width)]

    @property
    def width(self) -> int:
        return len(self.feature_of)

    def encode(self, table: Mapping[str, Array]) -> Array:
        """(rows, width) float32 of a table by column."""
        lacking = [name for name in self.used if name not in table]
        fix = "add what is missing, empty where it is unknown"
        refuse("it lacks", (lacking, f" {few_names(lacking)} of the training: {fix}"))
        blocks = [column.encode(name, table[name]) for name, column in self.used.items()]
        with np.errstate(over="ignore"):
            x = np.concatenate(blocks, axis=1, dtype=np.float32, casting="same_kind")
        fault = " are too large for float32 after scaling: rescale the table's columns"
        refuse("numbers", (not np.isfinite(x).all(), fault))
        return x

    def unseen(self, table: Mapping[str, Array]) -> dict[str, list[str]]:
        kinds = ((k, kind) for k, kind in self.by_name.items() if isinstance(kind, Categories))
        found = {k: kind.unseen(table[k]) for k, kind in kinds if k in table}
        return {name: words for name, words in found.items() if words}

    def as_json(self) -> dict[str, Any]:
        return {name: asdict(column) for name, column in self.by_name.items()}

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> "Columns":
        return cls(TypeAdapter(dict[str, TabularColumn]).validate_python(values))


def few_names(names: list[str]) -> str:
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"the column {shown}" if len(names) == 1 else f"{len(names)} columns ({shown})"


def fit(table: TabularSet, rows: Array) -> Columns:
    numbers = zip(table.names, fit_numbers(table.numeric, rows), strict=False)
    categories = zip(table.words, map(fit_categories, table.categorical[rows].T), strict=True)
    return Columns({**dict(numbers), **dict(categories)})


def fit_numbers(x: Array, rows: Array) -> Iterator[Numbers]:
    # nan is passed over
    low, high = (extreme.reduce(x[rows], axis=0) for extreme in (np.fmin, np.fmax))
    varies = high > low
    fitted: Iterator[tuple[float, ...]] = iter(())
    if varies.any():
        # columns first: the layout in memory decides the last bit of a mean, which records have
        seen = x[:, varies][rows]
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused later
            imputer = SimpleImputer(strategy="median").fit(seen)
            scaler = StandardScaler().fit(imputer.transform(seen))
        statistics = imputer.statistics_, scaler.mean_, scaler.scale_
        fitted = zip(*(values.tolist() for values in statistics), strict=True)
    for one_varies in varies:
        yield Numbers(*next(fitted)) if one_varies else Numbers(0.0, 0.0, 0.0)


def fit_categories(column: Array) -> Categories:
    fitted = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES)
    fitted.fit(column[:, None])
    (infrequent,) = fitted.infrequent_categories_
    rare = tuple(map(str, infrequent if infrequent is not None else ()))
    known = {*rare}
    return Categories(tuple(str(c) for c in fitted.categories_[0] if c not in known), rare)


def as_numbers(name: str, column: Array) -> Array:
    """Return a column as floats; words for what is missing are nan."""
    if column.dtype != object:
        x = column.astype(np.float64)
    else:
        x = np.array([as_number(name, word) for word in column], dtype=np.float64)
    if np.isinf(x).any():
        raise UserError(f"column {name} has infinite values: leave them empty if they are missing")
    return x


def as_number(name: str, word: str) -> float:
    if word == "" or word in MISSING:
        return np.nan
    try:
        return TRUTH[word] if word in TRUTH else float(word)
    except ValueError:
        raise UserError(
            f"column {name} has {word[:40]!r}, but the encoder was trained on numbers there: "
            "give a number, or leave it empty"
        ) from None


class PartRows(NamedTuple):
    """Row numbers of the three parts of a table."""

    train: Array
    validation: Array
    test: Array


def split_rows(
    table: TabularSet, seed: int, limit: int | None = None, tested: float = TESTED
) -> PartRows:
    """The table's own split, or a stratified 60 / 20 / 20 by the seed; `limit` thins it.

    The seed draws the share `tested` for the test part, and of a table that has a test part alone
    or of the rest a quarter for validation.
    """
    rows = np.arange(len(table))
    validation_start, test_start = table.starts or (None, None)
    if test_start is None:
        rest, test = draw_rows(table, rows, tested, seed)
    else:
        rest, test = np.split(rows, [test_start])
    if validation_start is None:
        train, validation = draw_rows(table, rest, 0.25, seed)
    else:
        train, validation = np.split(rest, [validation_start])
    if limit is not None and limit < len(table):
        draw = np.random.default_rng(seed)
        parts = [
            draw.permutation(part)[: max(1, len(part) * limit // len(table))]
            for part in (train, validation, test)
        ]
        train, validation, test = parts
    if len(np.unique(table.y[train])) < 2:
        raise UserError(f"the {len(train)} training rows are of one class: use more rows")
    return PartRows(train, validation, test)


def draw_rows(table: TabularSet, rows: Array, share: float, seed: int) -> tuple[Array, Array]:
    groups = np.asarray(table.groups)[rows] if len(table.groups) else ()
    with reading(f"a share of {share:g} of {len(rows)} rows", "give another", "cannot be drawn"):
        kept, drawn = draw_share(table.y[rows], share, seed, groups)
    return rows[kept], rows[drawn]


def standardise_columns(
    table: TabularSet,
    parts: PartRows,
    statistics: Literal["train", "train+validation", "paper"] = "train",
) -> tuple[dict[str, Labelled], Columns, dict[str, Any]]:
    """Missing numbers as the median, columns scaled to mean 0 and variance 1, categories one-hot.

    Beside the rows of each part, (rows, inputs), stand the columns with the statistics that they
    were encoded by, and notes on what was left out or filled in.

    Statistics are those of training rows ("train"), of both parts ("train+validation"), or of all
    rows, test rows included, as i-Mix does ("paper").
    """
    count = {"train": 1, "train+validation": 2, "paper": 3}[statistics]
    fitted_on = np.concatenate(parts[:count])
    columns, values = fit(table, fitted_on), table.columns
    fault = "every column is constant over the training rows: add a feature that varies"
    refuse("", (not columns.used, fault))
    notes = {name: value for name, value in notes_on(table, columns, fitted_on).items() if value}
    return labelled_parts(columns.encode(values), table, parts), columns, notes


def labelled_parts(x: Array, table: TabularSet, parts: PartRows) -> dict[str, Labelled]:
    y = torch.from_numpy(table.y).long()
    rows = parts._asdict().items()
    return {name: Labelled(torch.from_numpy(x[part]), y[part]) for name, part in rows}


def notes_on(table: TabularSet, columns: Columns, fitted_on: Array) -> dict[str, Any]:
    idle = [name for name in columns.by_name if name not in columns.used]
    missing = np.isnan(table.numeric)
    filled = {
        name: not column[fitted_on].all()
        for name, column in zip(table.names, missing.T, strict=False)
    }
    return {
        **table.notes,
        "missing numbers": int(missing.sum()),
        "constant columns": [name for name in idle if filled.get(name, True)],
        "empty columns": [name for name in idle if not filled.get(name, True)],
        "unseen categories": {
            name: len(words) for name, words in columns.unseen(table.columns).items()
        },
    }
