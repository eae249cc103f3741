"""How near a loss is to InfoNCE, by its gradient."""

from math import sqrt

import pytest
import torch

from contrastbench.benchmarks.against.batches import random_batch
from contrastbench.benchmarks.against.nearness import PAIRS, TEMPERATURES, nearness
from contrastbench.losses import both_views, get_loss


def by_loop(name: str, **params: float) -> list[float]:
    batch = random_batch(PAIRS, 0).leaves(torch.float64)
    get_loss(name, **params)(both_views(batch.z1, batch.z2)).backward()
    assert batch.z1.grad is not None
    assert batch.z2.grad is not None
    return torch.cat([batch.z1.grad, batch.z2.grad]).flatten().tolist()


@pytest.mark.parametrize(
    ("name", "params"), [("hcl", {"beta": 1.0}), ("siglip", {}), ("triplet", {"margin": 0.2})]
)
def test_it_is_the_best_cosine_of_a_loop(name: str, params: dict[str, float]) -> None:
    mine, found = by_loop(name, **params), []
    for temperature in TEMPERATURES:
        theirs = by_loop("infonce", temperature=temperature)
        dot = sum(a * b for a, b in zip(mine, theirs, strict=True))
        sizes = sum(a * a for a in mine), sum(b * b for b in theirs)
        found.append((dot / sqrt(sizes[0] * sizes[1]), temperature))
    cosine, temperature = max(found)
    assert nearness(name, params) == (pytest.approx(cosine, abs=6e-4), temperature)


def test_a_loss_at_its_limit_is_infonce() -> None:
    assert nearness("rince", {"temperature": 0.2, "q": 1e-6, "lam": 0.5}) == (1.0, 0.2)
    assert nearness("debiased", {"temperature": 0.2, "tau_plus": 0.3})[0] < 0.9
