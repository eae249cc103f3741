"""Make random numbers repeatable in code that uses the global generators.

Those are torch's of the CPU and of the device, NumPy's and Python's.
"""

import random
from contextlib import AbstractContextManager

import numpy as np
import torch

from contrastbench.domains.random import generator, seed_torch
from contrastbench.losses import blocks


def generators_kept(device: torch.device) -> AbstractContextManager[None]:
    """Put the generators back afterwards, wherever they stand then."""
    return blocks.drawing_from(blocks.generator_states(device), device)


def seed_generators(device: torch.device, *key: int) -> None:
    """Seed the global generators by a key such as (seed, epoch, step)."""
    seed = generator(torch.device("cpu"), *key).initial_seed()
    seed_torch(device, seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
