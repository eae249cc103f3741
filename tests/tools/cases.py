"""Random parameters and batches for every loss, within what float32 can hold."""

from random import Random
from typing import Any

from contrastbench.losses import LOSSES, Contrast
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views
from contrastbench.losses.registry import describe
from oracles import PARAMETERS

# losses/test_oracles.py fails where one is missing
NAMES = [name for name in LOSSES if name in PARAMETERS]


def random_params(name: str, seed: int) -> dict[str, Any]:
    r = Random(seed)
    params = PARAMETERS[name](r)
    known = {key.rpartition(".")[2] for key in describe(name).params}
    return {"temperature": r.uniform(0.1, 1), **params} if "temperature" in known else params


def random_contrast(seed: int) -> Contrast:
    """A small batch in one of the pairings, of numbers that float32 has too."""
    r = Random(seed)
    views = random_views(seed, r.randint(2, 4), dim=r.randint(3, 5))
    return LAW_PAIRINGS[r.choice(list(LAW_PAIRINGS))]([v.float().double() for v in views])
