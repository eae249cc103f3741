"""Splits, and columns made into numbers with statistics of the training rows alone."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from contrastbench.domains.reading import refuse
from contrastbench.domains.samples import Array, draw_share
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.tabular.columns import Columns, fit
from contrastbench.domains.tabular.table import TabularSet
from contrastbench.errors import UserError

TESTED = 0.2  # share of the rows that the seed draws for the test part


class PartRows(NamedTuple):
    """Row numbers of the three parts of a table."""

    train: Array
    validation: Array
    test: Array


@dataclass(frozen=True)
class Prepared:
    """A table as a network takes it."""

    train: Labelled  # x is (rows, inputs)
    validation: Labelled
    test: Labelled
    columns: Columns  # with the statistics that they were encoded by
    notes: dict[str, Any]  # what was left out or filled in


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
    kept, drawn = draw_share(table.y[rows], share, seed, groups)
    return rows[kept], rows[drawn]


def standardise_columns(
    table: TabularSet,
    parts: PartRows,
    statistics: Literal["train", "train+validation", "paper"] = "train",
) -> Prepared:
    """Missing numbers as the median, columns scaled to mean 0 and variance 1, categories one-hot.

    Statistics are those of training rows ("train"), of both parts ("train+validation"), or of all
    rows, test rows included, as i-Mix does ("paper").
    """
    count = {"train": 1, "train+validation": 2, "paper": 3}[statistics]
    fitted_on = np.concatenate(parts[:count])
    columns, values = fit(table, fitted_on), table.columns
    fault = "every column is constant over the training rows: add a feature that varies"
    refuse("", (not columns.used, fault))
    train, validation, test = labelled_parts(columns.encode(values), table, parts)
    notes = {name: value for name, value in notes_on(table, columns, fitted_on).items() if value}
    return Prepared(train, validation, test, columns, notes)


def labelled_parts(x: Array, table: TabularSet, parts: PartRows) -> tuple[Labelled, ...]:
    y = torch.from_numpy(table.y).long()
    return tuple(Labelled(torch.from_numpy(x[part]), y[part]) for part in parts)


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
