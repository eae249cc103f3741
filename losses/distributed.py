"""Negatives from all processes."""

from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor


def gather(z: Tensor) -> Tensor:
    """The rows of all processes, in the order of their ranks; differentiable.

    Pair the gathered views and every process computes the loss of the concatenated batch. Its
    gradient by this process's rows comes back once from each process, so that
    DistributedDataParallel's mean over the processes is the gradient that one process with the
    whole batch would have. Without processes, z itself.

    Args:
        z: (N, D) embeddings, the same shape on all ranks.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return z
    return cast(Tensor, Gather.apply(z))


class Gather(torch.autograd.Function):
    """All-gather whose backward sums what the processes send to each row."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        gathered = [
            torch.empty_like(z, memory_format=torch.contiguous_format)
            for _ in range(dist.get_world_size())
        ]
        dist.all_gather(gathered, z.contiguous())
        return torch.cat(gathered)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total.chunk(dist.get_world_size())[dist.get_rank()]
