"""Random numbers by a key, so that an interruption changes none."""

import numpy as np
import torch


def generator(device: torch.device, *key: int) -> torch.Generator:
    """Make a generator from a key such as (seed, epoch, step), so that resuming repeats it.

    Zeros at the end do not count: (5,) and (5, 0) are one stream, as NumPy fills keys up. All
    records are made so. Only a new version of every protocol may change it.
    """
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    # a device that is written in Python brings generators of its own
    kind = getattr(torch.get_device_module(device), "Generator", torch.Generator)
    return kind(device).manual_seed(int(state >> np.uint64(1)))
