"""Random numbers by a key, so that an interruption changes none."""

import numpy as np
import torch
from torch import Tensor

from contrastbench.errors import UserError


def generator(device: torch.device, *key: int) -> torch.Generator:
    """Make a generator from a key such as (seed, epoch, step), so that resuming repeats it.

    Zeros at the end do not count: (5,) and (5, 0) are one stream, as NumPy fills keys up. All
    records are made so. Only a new version of every protocol may change it.
    """
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    # a device that is written in Python brings generators of its own
    kind = getattr(torch.get_device_module(device), "Generator", torch.Generator)
    return kind(device).manual_seed(int(state >> np.uint64(1)))


def seed_torch(device: torch.device, seed: int) -> None:
    """Seed torch's global generators of the CPU and of the device."""
    # seeding all devices formats a traceback for each that is not there
    alone = device.type == "cpu"
    (torch.default_generator.manual_seed if alone else torch.manual_seed)(seed)


def on_host(rng: torch.Generator) -> torch.Generator:
    """Return a generator of the host that a device's determines; the next one is another.

    The state of a device's generator is kept by the host, which waits for nothing.
    """
    if rng.device.type == "cpu":
        return rng
    state = rng.get_state().tolist()
    torch.rand(1, generator=rng, device=rng.device)
    return generator(torch.device("cpu"), *state)


def balanced(labels: Tensor, classes: int, per_class: int, rng: torch.Generator) -> Tensor:
    """(per_class * classes,) numbers of samples: so many of each of some classes, which take turns.

    A class with fewer gives some of them twice.
    """
    noise = torch.rand(len(labels), generator=rng, device=labels.device, dtype=torch.float64)
    shuffled = (labels + noise).argsort()  # one class after the other, each in a random order
    kinds, sizes = labels.unique(return_counts=True)
    chosen = torch.randperm(len(kinds), generator=rng, device=labels.device)[:classes]
    start, turn = sizes.cumsum(0) - sizes, torch.arange(per_class, device=labels.device)[:, None]
    return shuffled[(start[chosen] + turn % sizes[chosen]).flatten()]


def check_class_count(asked: int | None, there: int) -> None:
    """Raise if a batch is to have more classes than there are."""
    if asked and asked > there:
        raise UserError(f"batch_classes={asked}: there are {there} classes, give no more")
