"""Metrics beside accuracy against loops over samples and pairs."""

import numpy as np
import pytest

from contrastbench.domains.scoring.metrics import class_metrics, largest_share

Array = np.ndarray


def by_loops(truth: Array, found: Array, scores: Array) -> dict[str, float]:
    recalls, f1s, areas = [], [], []
    for c in sorted({*truth, *found}):
        right = sum(t == f == c for t, f in zip(truth, found, strict=True))
        true, given = sum(truth == c), sum(found == c)
        f1s.append(2 * right / (true + given))
        if true:
            recalls.append(right / true)
            wins = [
                1.0 if a > b else 0.5 if a == b else 0.0
                for a in scores[truth == c, c]
                for b in scores[truth != c, c]
            ]
            areas.append(sum(wins) / len(wins))
    shares = {"balanced_accuracy": recalls, "macro_f1": f1s, "auroc": areas}
    return {name: 100 * sum(some) / len(some) for name, some in shares.items()}


@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_those_of_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.choice([0, 1, 3], size=40, p=[0.7, 0.2, 0.1])  # no sample of class 2
    scores = rng.integers(5, size=(40, 4)) + 2.0 * np.eye(4)[truth]  # some are equal
    found = scores.argmax(axis=1)
    assert class_metrics(truth, found, scores) == pytest.approx(by_loops(truth, found, scores))


def test_limits() -> None:
    truth = np.repeat([0, 1], [9, 1])
    nothing = class_metrics(truth, np.zeros(10, int), np.zeros((10, 2)))
    assert nothing["balanced_accuracy"] == nothing["auroc"] == 50.0
    assert set(class_metrics(truth, truth, np.eye(2)[truth]).values()) == {100.0}
    assert class_metrics(truth, truth, np.eye(2)[truth][:, :1])["auroc"] == 75.0  # none of class 1
    assert "auroc" not in class_metrics(truth[:9], truth[:9], np.zeros((9, 2)))
    assert largest_share(truth) == 90.0
