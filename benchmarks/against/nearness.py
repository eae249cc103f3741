"""How near a loss at its setting is to InfoNCE: where a search chose its limit, as a number."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from contrastbench.benchmarks.against.batches import random_batch
from contrastbench.benchmarks.against.calls import CalledLoss
from contrastbench.benchmarks.against.compare import runs

PAIRS = 64  # of the batch
TEMPERATURES = np.geomspace(0.02, 1, 18).round(3).tolist()  # those that searches have


def nearness(name: str, params: Mapping[str, Any]) -> tuple[float, float]:
    """Return the highest cosine of a loss's gradient with InfoNCE's, and InfoNCE's temperature.

    The gradients are those in all embeddings of one drawn batch of 64 pairs, in float64. A cosine
    of 1 is the same step on that batch; at the lowest temperature it is nearly the hardest negative
    alone, which sharp losses share.

    >>> nearness("infonce", {"temperature": 0.2})
    (1.0, 0.2)
    >>> nearness("debiased", {"temperature": 0.2, "tau_plus": 0.1})[0] < 1
    True
    """
    mine = gradient(name, tuple(params.items()))
    taus = ((tau, gradient("infonce", (("temperature", tau),))) for tau in TEMPERATURES)
    found = {tau: float(mine @ theirs) for tau, theirs in taus}
    best = max(found, key=found.__getitem__)
    return round(found[best], 3), best


@lru_cache
def gradient(name: str, params: tuple[tuple[str, Any], ...]) -> torch.Tensor:
    """Return the gradient of a loss on the batch, of length 1; every loss asks for InfoNCE's."""
    ((_, found),) = runs(CalledLoss(name, dict(params)), [random_batch(PAIRS, 0)], torch.float64)
    return torch.nn.functional.normalize(found.flatten(), dim=0)
