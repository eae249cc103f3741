"""Choose how much of a matrix of scores is held at once, and recompute a block as it was."""

import math
import random
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

CPU_BLOCK, CPU_TILE = 2**22, 256  # what the caches of a CPU like: 16 MiB in float32, 256 KiB
# As many as keep an accelerator busy: there every operation on a block costs a launch, whatever
# its size. Rows keep about ten numbers for each score, tiles about five.
BLOCK, TILE = 2**25, 2**13
# bytes of a device's memory for each score of a block: a twelfth of it is used
BYTES_PER_SCORE = 2**9


def block_elements(device: torch.device) -> int:
    """Return how many scores a block of rows holds."""
    return CPU_BLOCK if device.type == "cpu" else min(BLOCK, memory(device) // BYTES_PER_SCORE)


def tile(device: torch.device) -> int:
    """Return the number of rows and columns of a tile."""
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


def same_draws() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return contexts for a block's forward pass and for its recomputation, which draws the same.

    torch puts its own generators back; these are Python's, and NumPy's where it is imported.
    """
    return nullcontext(), drawing_from(generator_states())


@contextmanager
def drawing_from(states: list[Any]) -> Iterator[None]:
    """Draw from these states within the block, and go on after it as if nothing had been drawn."""
    later = generator_states()
    set_generators(states)
    try:
        yield
    finally:
        set_generators(later)


def generator_states() -> list[Any]:
    """Return the states of the process's generators that are not torch's."""
    numpy = sys.modules.get("numpy")
    return [random.getstate(), *([numpy.random.get_state()] if numpy else [])]


def set_generators(states: list[Any]) -> None:
    """Put the generators back into these states."""
    random.setstate(states[0])
    for state in states[1:]:
        sys.modules["numpy"].random.set_state(state)
