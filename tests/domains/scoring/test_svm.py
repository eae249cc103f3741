"""The SVM scorer against scikit-learn's own search on the same folds."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from contrastbench.domains.samples import draw_share
from contrastbench.domains.scoring.svm import (
    C_GRID,
    check_folds,
    linear_folds,
    svm_folds,
    svm_part,
)
from contrastbench.losses import UserError


def by_scikit_learn(x: np.ndarray, y: np.ndarray, folds: int, seed: int) -> tuple[list[float], ...]:
    accuracy, c, inner, auroc = [], [], [], []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y):
        search = GridSearchCV(SVC(), {"C": list(C_GRID)}, cv=5).fit(x[train], y[train])
        accuracy.append(100 * search.score(x[test], y[test]))
        c.append(search.best_params_["C"])
        inner.append(100 * search.best_score_)
        one_hot, scores = np.eye(max(y) + 1)[y[test]], search.decision_function(x[test])
        auroc.append(100 * roc_auc_score(one_hot if scores.ndim > 1 else y[test], scores))
    return accuracy, c, inner, auroc


@pytest.mark.parametrize(
    ("load", "folds", "seed", "classes"),
    [(load_iris, 4, 0, 3), (load_wine, 3, 7, 3), (load_wine, 3, 7, 2)],
)
def test_identical_to_grid_search(load: Callable, folds: int, seed: int, classes: int) -> None:
    x, y = load(return_X_y=True)
    x, y = x[y < classes], y[y < classes]
    scores = svm_folds(x, y, folds, seed)
    accuracy, c, inner, auroc = by_scikit_learn(x, y, folds, seed)
    assert scores.accuracy == pytest.approx(accuracy, abs=1e-12)
    assert scores.c == c
    assert scores.inner == pytest.approx(inner, abs=1e-12)
    assert scores.others["auroc"] == pytest.approx(auroc, abs=1e-9)
    assert scores.mean == pytest.approx(np.mean(accuracy))
    assert scores.std == pytest.approx(np.std(accuracy))


def test_the_fixed_part_is_scored_by_grid_search_on_all_others() -> None:
    x, y = load_wine(return_X_y=True)
    train, test = draw_share(y, 0.4, 0)
    assert sorted([*train, *test]) == [*range(len(y))]
    shares = np.bincount(y[test]) / np.bincount(y)
    assert shares == pytest.approx([0.4] * 3, abs=0.01), "of each class"
    scored = svm_part(x, y, train, test)
    search = GridSearchCV(SVC(), {"C": list(C_GRID)}, cv=5).fit(x[train], y[train])
    assert scored.accuracy == pytest.approx(100 * search.score(x[test], y[test]), abs=1e-12)
    assert (scored.c, scored.inner) == (search.best_params_["C"], 100 * search.best_score_)


def test_linear_folds_are_a_search_whose_validation_is_the_next_fold() -> None:
    x, y = load_wine(return_X_y=True)
    scores = linear_folds(x, y, 5, 3)
    fold = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=3).split(x, y)):
        fold[test] = k
    for k, (accuracy, c, inner) in enumerate(
        zip(scores.accuracy, scores.c, scores.inner, strict=True)
    ):
        rest, test = fold != k, fold == k
        held = np.where(fold[rest] == (k + 1) % 5, 0, -1)  # -1: always fitted on
        svm = make_pipeline(StandardScaler(), LinearSVC(random_state=3))
        grid = {"linearsvc__C": list(C_GRID)}
        search = GridSearchCV(svm, grid, cv=PredefinedSplit(held), refit=False)
        search.fit(x[rest], y[rest])
        assert c == search.best_params_["linearsvc__C"]
        assert inner == pytest.approx(100 * search.best_score_)
        svm.set_params(linearsvc__C=c).fit(x[rest][held == -1], y[rest][held == -1])
        assert accuracy == pytest.approx(100 * svm.score(x[test], y[test]))
    with pytest.raises(UserError, match="embeddings are not finite"):
        linear_folds(np.full((40, 2), np.nan), np.repeat([0, 1], 20))


def test_constant_embeddings_score_the_largest_class() -> None:
    x, y = np.ones((40, 3)), np.repeat([0, 1], [30, 10])
    assert svm_folds(x, y, 5).mean == pytest.approx(75.0)


def test_what_cannot_be_scored_is_named() -> None:
    with pytest.raises(UserError, match="class 1 has 3 members, fewer than the 10 folds"):
        check_folds(np.repeat([0, 1], [20, 3]), 10)
    with pytest.raises(UserError, match="class 1 has 3 members: 2 folds leave too few"):
        check_folds(np.repeat([0, 1], [20, 3]), 2)
    with pytest.raises(UserError, match="class 0 has 5 members: 5 folds leave too few"):
        check_folds(np.repeat([0, 1], [5, 5]), 5)
    with pytest.raises(UserError, match="all samples have one class"):
        check_folds(np.zeros(20), 10)
    with pytest.raises(UserError, match="embeddings are not finite"):
        svm_folds(np.full((40, 2), np.nan), np.repeat([0, 1], 20))
    with pytest.raises(UserError, match="embeddings are too large to square"):
        svm_folds(np.full((40, 2), 1e200), np.repeat([0, 1], 20))


def test_the_smallest_classes_that_pass_the_check_are_scored_like_scikit_learns() -> None:
    y = np.repeat([0, 1, 2], [12, 4, 9])
    x = np.random.default_rng(0).normal(size=(25, 3)) + y[:, None]
    check_folds(y, 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        accuracy = svm_folds(x, y, 2).accuracy
        assert not seen
        assert accuracy == pytest.approx(by_scikit_learn(x, y, 2, 0)[0])
