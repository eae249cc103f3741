"""Retrieval against a loop."""

import pytest
import torch
from torch.nn.functional import normalize

from contrastbench.domains.scoring import retrieval as scoring
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.retrieval import RECALLS, mutual_information, retrieval
from contrastbench.losses import UserError


def rows(seed: int = 0, n: int = 90, classes: int = 7) -> Labelled:
    """Classes that overlap; one has a single row."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.randint(0, classes, (n - 1,), generator=generator), torch.tensor([99])])
    centres = torch.randn(100, 5, generator=generator)
    return Labelled(centres[y] + 1.5 * torch.randn(n, 5, generator=generator), y)


def by_loop(data: Labelled) -> dict[str, float]:
    """Compute the metrics query by query, as the docstring defines them."""
    x, y = normalize(data.x, dim=1).double(), data.y.tolist()
    hits: dict[int, list[bool]] = {k: [] for k in RECALLS}
    precisions = []
    for q, label in enumerate(y):
        ranking = sorted((i for i in range(len(y)) if i != q), key=lambda i: -float(x[q] @ x[i]))
        right = [y[i] == label for i in ranking]
        relevant = sum(right)
        if not relevant:
            continue
        for k in RECALLS:
            hits[k].append(any(right[:k]))
        at = [sum(right[: i + 1]) / (i + 1) for i in range(relevant) if right[i]]
        precisions.append(sum(at) / relevant)
    found = {f"recall_at_{k}": 100 * sum(h) / len(h) for k, h in hits.items()}
    return {**found, "map_at_r": 100 * sum(precisions) / len(precisions)}


@pytest.mark.parametrize("block", [1000, 32])
def test_recalls_and_map_are_those_of_the_loop(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "QUERY_BLOCK", block)
    for seed in range(2):
        found = retrieval(rows(seed))
        for name, value in by_loop(rows(seed)).items():
            assert found[name] == pytest.approx(value, rel=1e-12), name


def test_clusters_that_are_the_classes_share_all_information() -> None:
    y = torch.arange(4).repeat_interleave(5)
    assert mutual_information(torch.eye(4)[y], y) == pytest.approx(1)
    assert retrieval(Labelled(torch.eye(4)[y], 10 * y))["map_at_r"] == 100


def test_nothing_to_retrieve_is_one_line() -> None:
    with pytest.raises(UserError, match="no class has two samples"):
        retrieval(Labelled(torch.eye(3), torch.arange(3)))
