"""Splits and scaling: the test rows are seen by nobody."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from contrastbench.domains.tabular.data import TabularSet, load_rows, no_columns
from contrastbench.domains.tabular.preprocessing import split_rows, standardise_columns
from contrastbench.losses import UserError


def table(
    numeric: np.ndarray,
    categorical: np.ndarray | None = None,
    starts: tuple[int, int] | None = None,
) -> TabularSet:
    n = len(numeric)
    words = no_columns(n) if categorical is None else categorical.astype(object)
    names = tuple(f"n{i}" for i in range(numeric.shape[1])) + tuple(
        f"c{i}" for i in range(words.shape[1])
    )
    return TabularSet(numeric.astype(float), words, names, np.arange(n) % 2, ("0", "1"), starts)


def test_parts_are_stratified_disjoint_and_of_the_seed() -> None:
    wine, _ = load_rows("wine")
    parts = split_rows(wine, seed=3)
    assert sorted(np.concatenate(parts)) == list(range(178))
    assert [len(part) for part in parts] == [106, 36, 36]
    for part in parts:
        assert np.bincount(wine.y[part]) / len(part) == pytest.approx(
            np.bincount(wine.y) / 178, abs=0.02
        )
    assert all(np.array_equal(a, b) for a, b in zip(parts, split_rows(wine, seed=3), strict=True))
    assert not np.array_equal(parts.test, split_rows(wine, seed=4).test)


def test_a_larger_share_may_be_tested() -> None:
    own = table(np.arange(100)[:, None])
    assert [len(part) for part in split_rows(own, seed=1, tested=0.4)] == [45, 15, 40]


def test_a_tables_own_parts_are_kept_and_a_limit_cuts_all_of_them() -> None:
    own = table(np.arange(100)[:, None], starts=(60, 80))
    parts = split_rows(own, seed=1)
    assert [(part[0], part[-1]) for part in parts] == [(0, 59), (60, 79), (80, 99)]
    few = split_rows(own, seed=1, limit=50)
    assert [len(part) for part in few] == [30, 10, 10]
    assert all(set(small) <= set(large) for small, large in zip(few, parts, strict=True))


def test_training_rows_of_one_class_are_refused() -> None:
    with pytest.raises(UserError, match="the 1 training rows are of one class"):
        split_rows(table(np.zeros((5, 1)), starts=(1, 3)), seed=0)


def test_scaling_is_that_of_the_training_rows() -> None:
    wine, _ = load_rows("wine")
    parts, x = split_rows(wine, 0), load_wine().data
    data, columns, notes = standardise_columns(wine, parts)
    scaler = StandardScaler().fit(x[parts.train])
    for part, rows in zip(data.values(), parts, strict=True):
        assert part.x.numpy() == pytest.approx(scaler.transform(x[rows]), abs=1e-5)
        assert part.y.tolist() == wine.y[rows].tolist()
    assert columns.feature_of == list(range(13))
    assert notes == {}


def test_statistics_of_the_paper_are_those_of_all_rows() -> None:
    wine, _ = load_rows("wine")
    parts = split_rows(wine, 0)
    x = StandardScaler().fit_transform(load_wine().data)
    assert standardise_columns(wine, parts, "paper")[0]["test"].x.numpy() == pytest.approx(
        x[parts.test], abs=1e-5
    )


def test_holes_constants_and_new_categories_are_counted() -> None:
    numeric = np.tile(np.arange(10.0)[:, None], 4)
    numeric[:, 1] = 7
    numeric[:, 2] = np.nan
    numeric[[1, 8], 0] = np.nan
    numeric[:9, 3] = 2  # varies among the test rows alone
    words = np.array([["a", "same"], ["b", "same"]] * 4 + [["c", "same"], ["", "other"]])
    data, columns, notes = standardise_columns(
        table(numeric, words, starts=(6, 8)), split_rows(table(numeric, words, starts=(6, 8)), 0)
    )
    assert notes == {
        "missing numbers": 12,
        "constant columns": ["n1", "n3", "c1"],
        "empty columns": ["n2"],
        "unseen categories": {"c0": 2, "c1": 1},
    }
    assert columns.feature_of == [0, 1, 1]
    assert data["train"].x[1, 0] == pytest.approx(0.0, abs=0.2), "the median of 0, 2, 3, 4, 5"
    assert data["train"].x[:2, 1:].tolist() == [[1, 0], [0, 1]]
    assert data["test"].x[:, 1:].tolist() == [[0, 0], [0, 0]]


def test_a_table_of_words_alone() -> None:
    words = table(np.empty((20, 0)), np.array([["a"], ["b"]] * 10))
    data, columns, _ = standardise_columns(words, split_rows(words, 0))
    assert data["train"].x.shape == (12, 2)
    assert columns.feature_of == [0, 0]


def test_what_cannot_be_scaled_is_one_line() -> None:
    same = table(np.ones((20, 2)))
    with pytest.raises(UserError, match="every column is constant"):
        standardise_columns(same, split_rows(same, 0))
    x = np.random.default_rng(0).normal(size=(20, 1))
    large = table(x, starts=(10, 15))
    for row in (-1, 0):  # outside and among the rows that the scale is fitted on
        large.numeric[row] = 1e300
        with pytest.raises(UserError, match="too large for float32"):
            standardise_columns(large, split_rows(large, 0))
