"""Read seeds as people write them."""

import re

from contrastbench.errors import UserError

SEED_LIMIT = 2**32  # scikit-learn, which draws folds and splits, takes no larger one
MOST_SEEDS = 10_000  # more are a slip of the hand
ADMISSION_SEEDS = "100-104"  # they choose data sets, so no table has them unless its file says so


def parse_seeds(text: str, name: str = "--seeds") -> list[int]:
    """Read a list of numbers and ranges as seeds.

    >>> parse_seeds("0-2,7")
    [0, 1, 2, 7]
    """
    seeds: list[int] = []
    cut = text if len(text) <= 60 else f"{text[:60]}..."
    shown = f"{name} {cut!r}"
    fix = "give distinct numbers from 0 on, below 2**32, such as 0-4 or 0,2,5"
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < SEED_LIMIT:
            raise UserError(f"{shown}: {fix}")
        if len(seeds) + last - first >= MOST_SEEDS:
            raise UserError(f"{shown}: give at most {MOST_SEEDS:,} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"{shown}: {fix}")
    return seeds
