"""Graphs with several answers of yes or no each, some unknown: molecules and their assays."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from contrastbench.domains.base import Evaluation
from contrastbench.domains.samples import Array, draw_folds
from contrastbench.errors import UserError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

INNER_FOLDS = 3
UNKNOWN = ("", "nan", "none", "null", "n/a", "na", "?")
ANSWERS = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, **dict.fromkeys(UNKNOWN, math.nan)}


def answers(name: str, words: Sequence[object]) -> tuple[float, ...]:
    """Return the answers of a graph to each task: 0, 1, or nan where it is unknown.

    >>> answers("a.csv", ["1", "", 0.0])
    (1.0, nan, 0.0)
    """
    texts = [str(word).strip().lower() for word in words]
    if wrong := [text for text in texts if text not in ANSWERS]:
        raise UserError(f"{name} has {wrong[0]!r} as one of several labels: give 0, 1 or nothing")
    return tuple(ANSWERS[text] for text in texts)


def task_evaluation(
    x: Array, y: Array, folds: int, seed: int, groups: Sequence[str] = ()
) -> Evaluation:
    """Return the mean AUROC over tasks, in percent, of logistic regressions on embeddings.

    Each fold is tested in turn. Columns are standardised by the training part, and C is 1. A task
    without both answers in a part is left out of that fold. Of (n, tasks) answers nan is neither
    trained on nor scored.
    """
    draws, named = [*draw_folds(y, folds, seed, groups)], np.array(groups)
    # (folds, tasks, 2) of the test part, and of the training part's own folds
    areas = 100 * np.array([[task_areas(x, a, *draw, named) for a in y.T] for draw in draws])
    if np.isnan(areas).all(axis=1).any():
        raise UserError("a fold has no task with both answers: use more data or fewer folds")
    tested, inner = np.nanmean(areas, axis=1).T
    return Evaluation(
        {"auroc": tested.mean(), "auroc_std_over_folds": tested.std()},
        "auroc",
        validation=inner.mean(),
        folds=tested.tolist(),
        inner=inner.tolist(),
        samples={"train": len(y)},
        test_part="folds",
        details={"folds_ddof": 0, "folds_n": folds},
    )


def task_part(x: Array, y: Array, parts: Mapping[str, int]) -> Evaluation:
    """Return the mean AUROC over tasks of the last part, in percent, as `task_evaluation` does.

    A part between chooses: the regressions of the first part are scored on it as well.
    """
    train, *held = np.split(np.arange(len(y)), np.cumsum([*parts.values()])[:-1])
    areas = 100 * np.array([held_areas(x, answer, train, held) for answer in y.T])
    if np.isnan(areas).all(axis=0).any():
        raise UserError("a part has no task with both answers: use more data")
    validation, tested = np.nanmean(areas, axis=0)
    of_tasks = [None if math.isnan(area) else area for area in areas[:, -1].tolist()]
    details = {"auroc_of_tasks": of_tasks}  # a record holds no nan
    return Evaluation({"auroc": tested}, "auroc", validation, samples={**parts}, details=details)


def task_areas(
    x: Array, answer: Array, train: Array, test: Array, groups: Array
) -> tuple[float, float]:
    from sklearn.model_selection import cross_val_score

    (area,), fit = held_areas(x, answer, train, [test]), train[~np.isnan(answer[train])]
    if math.isnan(area):
        return area, area
    folds = [*draw_folds(answer[fit], INNER_FOLDS, groups=groups[fit] if len(groups) else ())]
    scores = cross_val_score(regression(x), x[fit], answer[fit], cv=folds, scoring="roc_auc")
    return area, float(scores.mean())


def held_areas(x: Array, answer: Array, train: Array, held: Sequence[Array]) -> list[float]:
    """Return the AUROC of one task on each held part; nan where both answers are not there."""
    from sklearn.metrics import roc_auc_score

    fit, *tests = (part[~np.isnan(answer[part])] for part in (train, *held))
    rarest = [min((answer[part] == k).sum() for k in (0, 1)) for part in (fit, *tests)]
    if rarest[0] < INNER_FOLDS or not any(rarest[1:]):
        return [math.nan] * len(tests)
    scores = regression(x).fit(x[fit], answer[fit]).decision_function
    return [
        float(roc_auc_score(answer[part], scores(x[part]))) if few else math.nan
        for part, few in zip(tests, rarest[1:], strict=True)
    ]


def regression(x: Array) -> "Pipeline":
    """Make a logistic regression on standardised columns; bits stay as they are."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scale = [] if np.isin(x, (0, 1)).all() else [StandardScaler()]
    return make_pipeline(*scale, LogisticRegression(max_iter=1000))
