"""Batch norm over the whole batch, also where several processes share it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from contrastbench.distributed import all_sum, world
from contrastbench.losses.contrast import widen


class Shared(_BatchNorm):
    """Batch norm with the statistics of all processes that share a batch in training.

    Alone it is PyTorch's. torch.nn.SyncBatchNorm does the same on GPUs, and on nothing else.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, ...) normalised; n may differ between processes, and be zero."""
        return self.shared(x) if self.training and world() > 1 else super().forward(x)

    def shared(self, x: Tensor) -> Tensor:
        normal, mean, variance, count = Normalise.apply(x, self.eps)
        if self.running_mean is not None and self.running_var is not None:
            assert self.momentum is not None, "our networks move their statistics by a share"
            assert self.num_batches_tracked is not None, "they are counted where statistics run"
            self.num_batches_tracked.add_(1)
            unbiased = variance * (count / (count - 1))
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), self.momentum)
        if self.weight is None:
            return normal
        bias, weight = per_channel(self.bias, x), per_channel(self.weight, x)
        return torch.addcmul(bias, normal, weight).to(x.dtype)


class BatchNorm1d(Shared, nn.BatchNorm1d):
    """Batch normalisation of rows of features."""


class BatchNorm2d(Shared, nn.BatchNorm2d):
    """Batch normalisation of images."""


class Normalise(torch.autograd.Function):
    """(x - mean) / sqrt(variance + eps) by channel, over the rows of all processes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> tuple[Tensor, ...]:
        dims = [0, *range(2, x.ndim)]
        wide = widen(x)
        count = wide.new_full((1,), x.numel() // x.shape[1])
        sums = all_sum(torch.cat([wide.sum(dims), count]))
        mean, total = sums[:-1] / sums[-1], sums[-1]
        centred = wide - per_channel(mean, x)
        variance = all_sum(centred.square().sum(dims)) / total
        scale = (variance + eps).rsqrt()
        normal = (centred * per_channel(scale, x)).to(x.dtype)
        ctx.save_for_backward(normal, scale, total)
        ctx.mark_non_differentiable(mean, variance, total)
        return normal, mean, variance, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor, None]:
        normal, scale, total = ctx.saved_tensors
        dims = [0, *range(2, normal.ndim)]
        wide = widen(gradient)
        sums = all_sum(torch.cat([wide.sum(dims), (wide * normal).sum(dims)]))
        mean, slope = (per_channel(part, normal) for part in (sums / total).chunk(2))
        slopes = (wide - mean - normal * slope) * per_channel(scale, normal)
        return slopes.to(gradient.dtype), None


def per_channel(channels: Tensor, x: Tensor) -> Tensor:
    """(channels, 1, ...) to be broadcast over x."""
    return channels.view(-1, *[1] * (x.ndim - 2))
