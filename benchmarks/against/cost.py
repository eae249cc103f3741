"""Time and memory of a step of two losses, side by side."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from contrastbench.benchmarks.against.batches import random_batch
from contrastbench.benchmarks.against.calls import CalledLoss
from contrastbench.benchmarks.perf.timing import best_of


@dataclass(frozen=True)
class RelativeCost:
    """Time and memory of one loss relative to another."""

    time: float
    memory: float


def relative_cost(first: CalledLoss, other: CalledLoss, size: int) -> RelativeCost:
    """Measure a step of the first relative to the other, in float32 on a CPU."""
    time = best_of(step_function(first, size)) / best_of(step_function(other, size))
    return RelativeCost(time, kept_bytes(first, size) / max(1, kept_bytes(other, size)))


def step_function(side: CalledLoss, size: int) -> Callable[[], None]:
    """Return a step: forward and backward."""
    loss, batch = side.make(torch.float32), random_batch(size, 0).leaves(torch.float32)

    def run() -> None:
        torch.autograd.grad(loss(batch), [batch.z1, batch.z2], allow_unused=True)

    return run


def kept_bytes(side: CalledLoss, size: int) -> int:
    """Return how many bytes of tensors the forward pass keeps for the backward pass."""
    loss, batch = side.make(torch.float32), random_batch(size, 0).leaves(torch.float32)
    kept: dict[int, Tensor] = {}  # by address; the tensors themselves, so that none is freed

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss(batch)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
