"""How often tests repeat what they draw: full counts times one scale, all from one seed."""

import os
import random
from collections.abc import Callable

SCALE = float(os.environ.get("CONTRASTBENCH_TESTS", "0.1"))  # tox -e full: 0.25, tox -e attack: 10
SEED = int(os.environ.get("CONTRASTBENCH_TESTS_SEED", "0"))


def times(count: int, least: int = 1) -> int:
    """Scale a full count; a test that shows nothing with fewer names its least."""
    return max(least, round(count * SCALE))


def dice(name: str) -> random.Random:
    """Return a generator of the seed, independent for each name."""
    return random.Random(f"{SEED} {name}")


def often(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let hypothesis draw so many examples of the run's seed."""
    from hypothesis import HealthCheck, seed, settings

    quiet = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    return lambda test: seed(SEED)(settings(max_examples=times(examples), **quiet)(test))
