"""Share one batch over several processes: each computes its own rows, and all see the whole.

Within `sharing`, whoever embeds samples takes `own_rows` of the batch and `gather`s the embeddings.
Every process then makes the same contrasts of the whole batch; losses compute the terms of their
own rows of anchors and gather them too. So the loss is that of one process with the whole batch,
unless it draws random numbers: every process draws the same ones, for other rows. The gradients
that a process has then are as many times its part of them as there are processes: their mean over
the processes, which `average_gradients` takes, is the gradient of the whole batch.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

sharing_now = False


class ProcessLost(RuntimeError):
    """Another process of this training has ended, or cannot be reached."""


@contextmanager
def sharing() -> Iterator[None]:
    """Let the processes of torch.distributed share each batch within the block."""
    global sharing_now
    before, sharing_now = sharing_now, dist.is_available() and dist.is_initialized()
    try:
        yield
    finally:
        sharing_now = before


@contextmanager
def alone() -> Iterator[None]:
    """Let each process compute the whole batch within the block, as if it were alone."""
    global sharing_now
    before, sharing_now = sharing_now, False
    try:
        yield
    finally:
        sharing_now = before


def world() -> int:
    """Return how many processes share a batch; 1 outside of `sharing`."""
    return dist.get_world_size() if sharing_now else 1


def own_rows(total: int) -> slice:
    """The rows of a batch that this process computes: rank r of W has r, r + W, r + 2 W, ...

    >>> own_rows(5)
    slice(0, 5, 1)
    """
    return slice(dist.get_rank() if sharing_now else 0, total, world())


def gather(z: Tensor, total: int) -> Tensor:
    """(total, ...) the rows of all processes in the order of the batch; differentiable.

    Args:
        z: this process's `own_rows` of them.
        total: the number of rows of all processes.
    """
    return z if world() == 1 else cast(Tensor, Gather.apply(z, total))


class Gather(torch.autograd.Function):
    """All-gather whose backward sums what the processes send to each row."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, total: int) -> Tensor:
        own = z.new_zeros(-(-total // world()), *z.shape[1:])  # all of one length
        own[: len(z)] = z
        parts = [torch.empty_like(own) for _ in range(world())]
        all_gather(parts, own)
        return torch.stack(parts, dim=1).flatten(0, 1)[:total]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return all_sum(gradient.clone(memory_format=torch.contiguous_format))[
            own_rows(len(gradient))
        ], None


def average_gradients(gradients: Iterable[Tensor | None]) -> None:
    """Replace gradients by their means over the processes; None stays, as no process has it."""
    if world() == 1:
        return
    found = [gradient for gradient in gradients if gradient is not None]
    mean = all_sum(torch.cat([gradient.flatten() for gradient in found])).div_(world())
    parts = mean.split([gradient.numel() for gradient in found])
    for gradient, part in zip(found, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def all_sum(x: Tensor) -> Tensor:
    """The sum over the processes, in place."""
    with process_lost():
        dist.all_reduce(x)
    return x


def all_gather(parts: list[Tensor], own: Tensor) -> None:
    """Each process's tensor, all of one shape."""
    with process_lost():
        dist.all_gather(parts, own)


@contextmanager
def process_lost() -> Iterator[None]:
    """Turn any error between processes into one: a process is gone."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise ProcessLost(f"another process of this training has ended ({error})") from error
