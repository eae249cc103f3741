"""Splits, and columns made into numbers with statistics of the training rows alone."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import Tensor

from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.tabular.table import Array, Table
from contrastbench.losses.errors import UserError

MAX_CATEGORIES = 100  # of a column; the rarest share the last


class Parts(NamedTuple):
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
    feature_of: Tensor  # (inputs,) the table's column that each comes from, numbered without gaps
    inputs: tuple[str, ...]  # what each is: a column, or a category of one
    notes: dict[str, Any]  # what was left out or filled in


def split(table: Table, seed: int, limit: int | None = None) -> Parts:
    """The table's own split, or a stratified 60 / 20 / 20 by the seed; `limit` thins it.

    Of a table that has a test part alone, the seed draws a quarter of the rest for validation.

    Raises:
        UserError: the training rows are of one class.
    """
    rows = np.arange(len(table))
    validation_start, test_start = table.starts or (None, None)
    if test_start is None:
        rest, test = train_test_split(rows, test_size=0.2, stratify=table.y, random_state=seed)
    else:
        rest, test = np.split(rows, [test_start])
    if validation_start is None:
        train, validation = train_test_split(
            rest, test_size=0.25, stratify=table.y[rest], random_state=seed
        )
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
    return Parts(train, validation, test)


def prepare(
    table: Table,
    parts: Parts,
    statistics: Literal["train", "train+validation", "paper"] = "train",
) -> Prepared:
    """Missing numbers as the median, columns scaled to mean 0 and variance 1, categories one-hot.

    Args:
        table: what to prepare.
        parts: its split.
        statistics: "train" fits all of it on training rows, "train+validation" on those of both
            parts; "paper" on all rows, test rows included, as i-Mix does.

    Raises:
        UserError: no column varies, or values are too large for float32.
    """
    count = {"train": 1, "train+validation": 2, "paper": 3}[statistics]
    blocks, inputs, notes = encode(table, np.concatenate(parts[:count]))
    notes = {**table.notes, "missing numbers": int(np.isnan(table.numeric).sum()), **notes}
    if not blocks:
        raise UserError(
            "every column is constant over the training rows: add a feature that varies"
        )
    with np.errstate(over="ignore"):
        x = np.concatenate(blocks, axis=1, dtype=np.float32, casting="same_kind")
    if not np.isfinite(x).all():
        raise UserError(
            "numbers are too large for float32 after scaling: rescale the table's columns"
        )
    features = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    train, validation, test = (
        Labelled(torch.from_numpy(x[p]), torch.from_numpy(table.y[p]).long()) for p in parts
    )
    told = {name: value for name, value in notes.items() if value}
    return Prepared(train, validation, test, torch.from_numpy(features), tuple(inputs), told)


def encode(table: Table, fit: Array) -> tuple[list[Array], list[str], dict[str, Any]]:
    """One block of inputs for each column that varies, the inputs' names, notes on the others."""
    # nan is passed over
    low, high = (extreme.reduce(table.numeric[fit], axis=0) for extreme in (np.fmin, np.fmax))
    varies = high > low
    names = np.array(table.names, dtype=object)
    numbers, words = names[: len(varies)], names[len(varies) :]
    constant, empty = list(numbers[high == low]), list(numbers[np.isnan(high)])
    blocks = (
        list(np.split(scale(table.numeric[:, varies], fit), varies.sum(), axis=1))
        if varies.any()
        else []
    )
    inputs, unseen = list(numbers[varies]), dict[str, int]()
    for name, column in zip(words, table.categorical.T, strict=True):
        block, categories, count = one_hot(column, fit)
        if block.shape[1] > 1:
            blocks.append(block)
            inputs += [f"{name}={category}" for category in categories]
        else:
            constant.append(name)
        unseen |= {name: count} if count else {}
    notes = {"constant columns": constant, "empty columns": empty, "unseen categories": unseen}
    return blocks, inputs, notes


def scale(x: Array, fit: Array) -> Array:
    """Numbers scaled to mean 0 and variance 1 of the rows to fit on; missing: the median."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused afterwards
        return (
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
            .fit(x[fit])
            .transform(x)
        )


def one_hot(column: Array, fit: Array) -> tuple[Array, list[str], int]:
    """(rows, categories), these, and how many rows have a category that was not fitted on."""
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        max_categories=MAX_CATEGORIES,
        sparse_output=False,
        dtype=np.float32,
    ).fit(column[fit, None])
    known = set(encoder.categories_[0])
    unseen = sum(value not in known for value in column)
    categories = [name.removeprefix("_") for name in encoder.get_feature_names_out([""])]
    return encoder.transform(column[:, None]), categories, unseen
