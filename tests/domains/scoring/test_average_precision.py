"""VOC2007's mean average precision against loops, and the transfer that is scored by it."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from contrastbench.domains.scoring import average_precision
from contrastbench.domains.scoring.average_precision import (
    eleven_point_precision,
    transfer_multi_label,
)
from contrastbench.domains.scoring.classifiers import Labelled


def eleven_points(scores: list[float], y: list[int]) -> float:
    """Compute the precision as the development kit does: image by image, then the maxima."""
    order = sorted(range(len(y)), key=lambda k: -scores[k])
    total, found, seen, curve = y.count(1), 0, 0, []
    for k in order:
        if y[k] == 0:
            continue
        seen += 1
        found += y[k] == 1
        curve.append((found, found / seen))
    points = []
    for tenth in range(11):
        reached = [p for f, p in curve if 10 * f >= tenth * total]
        points.append(max(reached, default=0.0))
    return 100 * sum(points) / 11


@pytest.mark.parametrize("seed", range(20))
def test_average_precision_is_that_of_eleven_recalls(seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    n = 5 + 3 * seed
    scores = torch.randn(n, generator=rng, dtype=torch.float64)
    y = torch.randint(-1, 2, (n,), generator=rng)
    y[0] = 1
    assert eleven_point_precision(scores, y) == pytest.approx(
        eleven_points(scores.tolist(), y.tolist())
    )


def several(count: int, seed: int) -> Labelled:
    """Rows that are of each of three classes by the sign of a column, with noise."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=rng)
    y = (x[:, :3] + 0.7 * torch.randn(count, 3, generator=rng)).sign().long()
    y[torch.rand(count, 3, generator=rng) < 0.1] = 0
    return Labelled(x, y)


def test_one_c_is_chosen_and_each_class_is_fitted_again_with_validation_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = (1e-4, 1e-2, 1.0)
    monkeypatch.setattr(average_precision, "TRANSFER_GRID", grid)
    train, validation, test = several(60, 0), several(40, 1), several(80, 2)

    def fitted(rows: Labelled, c: float) -> list[LogisticRegression]:
        said = [rows.y[:, k] != 0 for k in range(3)]
        return [
            LogisticRegression(C=c, max_iter=5000, tol=1e-8).fit(rows.x[s], rows.y[s, k])
            for k, s in enumerate(said)
        ]

    def score(models: list[LogisticRegression], rows: Labelled) -> float:
        found = [m.decision_function(rows.x).tolist() for m in models]
        return sum(eleven_points(s, rows.y[:, k].tolist()) for k, s in enumerate(found)) / 3

    scores = [score(fitted(train, c), validation) for c in grid]
    best = grid[scores.index(max(scores))]
    both = Labelled(*map(torch.cat, zip(train, validation, strict=True)))
    found = transfer_multi_label(train, validation, test)
    assert found["C"] == best
    # L-BFGS stops at its tolerance, and two neighbours may change places
    expected = score(fitted(both, best), test)
    assert found["mean_average_precision"] == pytest.approx(expected, abs=0.5)
    assert found["mean_average_precision"] > 75
