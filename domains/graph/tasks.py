"""Graphs with several answers of yes or no each, some unknown: molecules and their assays."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from contrastbench.domains.base import Evaluation
from contrastbench.errors import UserError

Array = np.ndarray[Any, np.dtype[Any]]
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


def task_folds(graphs: int, folds: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers of each fold's training and test graphs."""
    from sklearn.model_selection import KFold

    return KFold(folds, shuffle=True, random_state=seed).split(np.empty(graphs))


def task_evaluation(x: Array, y: Array, folds: int, seed: int) -> Evaluation:
    """Return the mean AUROC over tasks, in percent, of logistic regressions on embeddings.

    Each fold is tested in turn. Columns are standardised by the training part, and C is 1. A task
    without both answers in a part is left out of that fold.

    Args:
        x: (n, d) embeddings.
        y: (n, tasks) answers; nan is neither trained on nor scored.
        folds: how many, shuffled by the seed.
        seed: of the shuffle.
    """
    draws = [*task_folds(len(y), folds, seed)]
    # (folds, tasks, 2) of the test part, and of the training part's own folds
    areas = 100 * np.array([[task_areas(x, answer, *draw) for answer in y.T] for draw in draws])
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


def task_areas(x: Array, answer: Array, train: Array, test: Array) -> tuple[float, float]:
    """Return the AUROC of one task on the test part, and in folds of the training part."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fit, held = (part[~np.isnan(answer[part])] for part in (train, test))
    rarest = [min((answer[part] == k).sum() for k in (0, 1)) for part in (fit, held)]
    if rarest[0] < INNER_FOLDS or not rarest[1]:
        return math.nan, math.nan
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    inner = cross_val_score(model, x[fit], answer[fit], cv=INNER_FOLDS, scoring="roc_auc").mean()
    scores = model.fit(x[fit], answer[fit]).decision_function(x[held])
    return float(roc_auc_score(answer[held], scores)), float(inner)
