"""SentEval's transfer tasks against scikit-learn's own search."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

from contrastbench.domains.sentence import transfer
from contrastbench.domains.sentence.encoder import Embeddings
from contrastbench.domains.sentence.transfer import (
    Examples,
    TransferTask,
    evaluate_transfer,
    features,
)

FOLDS_C, SPLIT_C = [0.25, 0.5, 1, 2, 4, 8], [0.5, 1, 2, 4, 8, 16, 32]  # SentEval's
CLASSES = {"two": ["0", "1"], "three": ["ABBR", "DESC", "NUM"]}


def split(part: str, n: int, classes: list[str], pairs: bool = False) -> Examples:
    first = [f"{part} {i}" for i in range(n)]
    return Examples(
        first,
        [classes[i % len(classes)] for i in range(n)],
        [f"{s} b" for s in first] if pairs else [],
    )


def embedded(task: TransferTask) -> Embeddings:
    """Noisy embeddings that tell the class, in which the best C differs between folds."""
    sentences = task.sentences
    rng, y = (
        np.random.default_rng(3),
        {
            s: c
            for p in (task.train, task.test, task.dev)
            if p
            for s, c in zip(p.first, p.y, strict=True)
        },
    )
    shift = {c: rng.normal(size=6) for c in sorted(set(task.train.y))}
    z = [0.05 * (rng.normal(size=6) * 2 + shift.get(y.get(s, ""), 0)) for s in sentences]
    return Embeddings(
        {s: i for i, s in enumerate(sentences)}, torch.tensor(np.array(z), dtype=torch.float32), {}
    )


def check_choice(
    c: float, x: np.ndarray, y: np.ndarray, cv: object, grid: list[float] = FOLDS_C
) -> None:
    """The plain way to C, every fit from the start to the end, likes no other by more than a row.

    A row on the boundary may fall to either side, by the fit's tolerance and by the CPU.
    """
    plain = LogisticRegression(tol=1e-8, max_iter=100000)
    search = GridSearchCV(plain, {"C": grid}, cv=cv, refit=False).fit(x, y)
    scores = dict(zip(grid, search.cv_results_["mean_test_score"], strict=True))
    assert scores[c] > max(scores.values()) - 1.01 / len(y)


def expected(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, c: float
) -> float:
    return 100 * LogisticRegression(C=c, tol=1e-8, max_iter=100000).fit(x, y).score(x_test, y_test)


def folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(10, shuffle=True, random_state=seed)


@pytest.mark.parametrize("kind", CLASSES)
def test_folds_choose_c_inside_each_training_part(kind: str) -> None:
    task = TransferTask("MR", split("train", 150, CLASSES[kind]))
    z = embedded(task)
    x, y = features(z, task.train).astype(float), np.array(task.train.y)
    found = evaluate_transfer(z, [task], seed=1)
    scores = found.details["tasks"]["MR"]
    for k, (score, (train, test)) in enumerate(zip(scores, folds(1).split(x, y), strict=True)):
        if not k:  # each check is 60 plain fits
            check_choice(score["C"], x[train], y[train], folds(1))
        plain = expected(x[train], y[train], x[test], y[test], score["C"])
        assert score["accuracy"] == pytest.approx(plain, abs=101 / len(test))
    assert (
        found.metrics["MR"]
        == found.metrics["avg"]
        == np.mean([score["accuracy"] for score in scores])
    )
    assert len({score["C"] for score in scores}) > 1
    assert ("f1" in scores[0]) == (kind == "two")


@pytest.mark.parametrize("dev", [False, True])
def test_an_official_split_is_scored_once(dev: bool) -> None:
    task = TransferTask(
        "T",
        *(
            split(part, n, CLASSES["two"], pairs=True)
            for part, n in (("train", 120), ("test", 50), ("dev", 40))
        ),
    )
    task = task if dev else TransferTask("T", task.train, task.test)
    z = embedded(task)
    x, x_test = (features(z, part).astype(float) for part in (task.train, task.test))
    u, v = (z.of([f"test 7{end}"])[0].numpy() for end in ("", " b"))
    assert np.array_equal(x_test[7].astype("f4"), [*abs(u - v), *u * v])
    y, y_test = np.array(task.train.y), np.array(task.test.y)
    (score,) = evaluate_transfer(z, [task], seed=0).details["tasks"]["T"]
    if dev:
        cv = PredefinedSplit([-1] * len(y) + [0] * len(task.dev.y))
        rows = np.concatenate([x, features(z, task.dev)]), np.concatenate([y, task.dev.y])
        check_choice(score["C"], *rows, cv)
    else:
        check_choice(score["C"], x, y, folds(0), SPLIT_C)
    plain = expected(x, y, x_test, y_test, score["C"])
    assert score["accuracy"] == pytest.approx(plain, abs=101 / len(y_test))


def test_of_values_of_c_that_are_equally_good_the_smallest_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SentEval compares percents of two decimals: a lead of less than that is none."""
    task = TransferTask("MR", split("train", 150, CLASSES["two"]))
    table = [0.5, 0.7, 0.70004, 0.6, 0.7, 0.6]
    monkeypatch.setattr(transfer, "path_accuracies", lambda *_: table)
    scores = evaluate_transfer(embedded(task), [task], seed=1).details["tasks"]["MR"]
    assert {score["C"] for score in scores} == {FOLDS_C[1]}


def test_each_task_tries_the_values_of_c_that_senteval_tries() -> None:
    """Folds and a development part (SST2): 2^-2..2^3; a test part alone (TREC): 2^-1..2^5."""
    part = transfer.Examples(["a"], ["0"])
    grids = [transfer.TransferTask("", part, *rest).grid for rest in ((), (part,), (part, part))]
    assert [(grid[0], grid[-1]) for grid in grids] == [(0.25, 8.0), (0.5, 32.0), (0.25, 8.0)]
