"""Choose how much of a matrix of scores is held at once, and recompute a block as it was."""

import math
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

# by all inputs: zero by those that the outputs do not use
gradients = partial(torch.autograd.grad, allow_unused=True, materialize_grads=True)
CPU_BLOCK, CPU_TILE = 3 * 2**16, 256  # what a CPU's caches like: 768 KiB in float32, 256 KiB
CPU_WHOLE = 2**18  # so few scores are one block, which is not computed again
# As many as keep an accelerator busy: there every operation on a block costs a launch, whatever
# its size. Rows keep about ten numbers for each score, tiles about five.
BLOCK, TILE = 2**25, 2**13
# bytes of a device's memory for each score of a block: a twelfth of it is used
BYTES_PER_SCORE = 2**9


def block_elements(device: torch.device, scores: int) -> int:
    if device.type == "cpu":
        return scores if scores <= CPU_WHOLE else CPU_BLOCK
    return min(BLOCK, memory(device) // BYTES_PER_SCORE)


def tile(device: torch.device) -> int:
    if device.type == "cpu":
        return CPU_TILE
    return min(TILE, math.isqrt(memory(device) // BYTES_PER_SCORE))


def memory(device: torch.device) -> int:
    """Return the bytes of the device's memory.

    All of it, not what is free now: sums over blocks of other sizes differ in their last digits,
    and these should not depend on who else uses the device.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return BYTES_PER_SCORE * TILE**2


@contextmanager
def drawing_from(states: list[Any], device: torch.device) -> Iterator[None]:
    """Draw from these states within the block, and go on after it as if nothing had been drawn."""
    later = generator_states(device)
    set_generators(states, device)
    try:
        yield
    finally:
        set_generators(later, device)


def generator_states(device: torch.device) -> list[Any]:
    numpy = sys.modules.get("numpy")
    here = torch.get_rng_state()
    there = here if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device)
    return [random.getstate(), here, there, *([numpy.random.get_state()] if numpy else [])]


def set_generators(states: list[Any], device: torch.device) -> None:
    of_python, here, there, *of_numpy = states
    random.setstate(of_python)
    torch.set_rng_state(here)
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(there, device)
    for state in of_numpy:
        sys.modules["numpy"].random.set_state(state)
