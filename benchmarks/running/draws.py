"""Make random numbers repeatable in code that uses the global generators.

Those are torch's of the CPU and of the device, NumPy's and Python's.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from contrastbench.domains.random import generator, seed_torch


@contextmanager
def generators_kept(device: torch.device) -> Iterator[None]:
    """Put the generators back afterwards, wherever they stand then."""
    python, numbers = random.getstate(), np.random.get_state()
    devices = [] if device.type == "cpu" else [device]
    try:
        with torch.random.fork_rng(devices, device_type=device.type):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numbers)


def seed_generators(device: torch.device, *key: int) -> None:
    """Seed the global generators by a key such as (seed, epoch, step)."""
    seed = generator(torch.device("cpu"), *key).initial_seed()
    seed_torch(device, seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
