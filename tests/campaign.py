"""How much is attacked: counts of CI, times what the weekly run asks for, all from one seed."""

import os
import random

TIMES = float(os.environ.get("CONTRASTBENCH_ATTACK", "1"))  # tox -e attack: 10
SEED = int(os.environ.get("CONTRASTBENCH_ATTACK_SEED", "0"))


def times(count: int) -> int:
    """So many of them in CI, more in the weekly run."""
    return max(1, round(count * TIMES))


def dice(name: str) -> random.Random:
    """Draws of the campaign's seed, apart for each name."""
    return random.Random(f"{SEED} {name}")
