"""What domains share: batch norm, heads, the momentum copy for targets, copies to a device."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from contrastbench.distributed import all_sum, gather, own_rows, world
from contrastbench.losses import contrast
from contrastbench.losses.contrast import Contrast, widen

MOVING_TARGET = "the momentum of the target network changes with each step"  # on the host
PAIR_OF = {"one_way": "query_key", "both_ways": "query_key"}  # functions of other names than keys
TURNED = ("own_view", "both_ways")  # keys by which each view is once the first


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


def layer(inputs: int, outputs: int, batch_norm: bool) -> list[nn.Module]:
    """Linear, batch norm, ReLU."""
    norm: list[nn.Module] = [BatchNorm1d(outputs)] if batch_norm else []
    return [nn.Linear(inputs, outputs, bias=not batch_norm), *norm, nn.ReLU()]


def head(inputs: int, hidden: int, outputs: int, batch_norm: bool = True) -> nn.Sequential:
    return nn.Sequential(*layer(inputs, hidden, batch_norm), nn.Linear(hidden, outputs))


def embed_together(network: Callable[..., Tensor], view: Any, **options: Any) -> Tensor:
    """(n, d) a network's embeddings of a batch of n samples.

    Processes that share the batch embed rows of their own each, and all get the whole.
    """
    rows = len(view)
    return gather(network(view[own_rows(rows)], **options), rows)


def unwaited(tensor: Tensor, device: torch.device) -> Tensor:
    pinned = tensor.pin_memory() if device.type == "cuda" else tensor
    return pinned.to(device, non_blocking=True)


class ContrastiveModel(nn.Module):
    """Encoder, projection and, with a momentum, prediction head and target network.

    The target network is a copy of encoder and projection that follows them as in MoCo v3: a moving
    average of the weights whose momentum rises to 1 along half a cosine, as BYOL's does, over so
    many steps; its batch norm keeps statistics of its own. A momentum of 0 stays 0: the target is
    the online network with its gradient stopped, as in SimSiam. Without one there is no target.
    """

    def __init__(
        self,
        encoder: nn.Module,
        projector: nn.Module,
        predictor: nn.Module | None = None,
        momentum: float | None = None,
        steps: int = 0,
    ) -> None:
        super().__init__()
        self.encoder, self.projector = encoder, projector
        self.predictor = predictor or nn.Identity()
        self.momentum, self.steps = momentum or 0.0, steps
        self.updates = 0  # of the target; the host's, so that no step waits for the device
        if momentum is not None:
            self.target = copy.deepcopy(self.online).requires_grad_(False)

    @property
    def online(self) -> nn.Sequential:
        return nn.Sequential(self.encoder, self.projector)

    def features(self, x: Tensor) -> Tensor:
        """(n, features) what is scored."""
        return self.encoder(x)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) embeddings of samples, as anchors."""
        return self.predictor(self.projector(self.encoder(x)))

    @torch.no_grad()
    def targets(self, x: Tensor) -> Tensor:
        """(n, d) embeddings of samples as keys, without gradient."""
        return self.target(x)

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target's weights towards the online ones; once a step, before its targets."""
        share = self.momentum_now()
        for target, online in zip(self.target.parameters(), self.online.parameters(), strict=True):
            target.lerp_(online, 1 - share)
        self.updates += 1

    def momentum_now(self) -> float:
        if not self.momentum:
            return 0.0
        done = min(1.0, self.updates / max(1, self.steps))
        return 1 - (1 - self.momentum) * (1 + math.cos(math.pi * done)) / 2

    def get_extra_state(self) -> Tensor:
        """Return the extra state as a tensor, since a checkpoint holds tensors."""
        return torch.tensor(self.updates)

    def set_extra_state(self, state: Tensor) -> None:
        self.updates = int(state)


def moco(model: ContrastiveModel, views: Sequence[Tensor]) -> list[Contrast]:
    """Make MoCo v3's contrasts: for each whole view, the other views' queries meet its keys."""
    model.update_target()
    keys = [embed_together(model.targets, view) for view in views[:2]]
    queries = [embed_together(model, view) for view in views]
    others = ([q for j, q in enumerate(queries) if j != i] for i in range(len(keys)))
    return [contrast.query_key(crops, key) for crops, key in zip(others, keys, strict=True)]


def pair_views(pairing: str, z1: Tensor, *others: Tensor, labels: Tensor | None) -> list[Contrast]:
    """Pair (n, d) views as a recipe's key says, with (n,) labels where contrasts read classes."""
    if pairing in ("supervised", "balanced"):
        assert labels is not None, "they are read"
        return [contrast.same_class(z1, others[0] if others else None, labels)]
    z2, *more = others
    if pairing == "both_views":
        return [contrast.both_views(z1, z2, more, labels)]
    pair = getattr(contrast, PAIR_OF.get(pairing, pairing))
    return [pair(z1, z2), pair(z2, z1)] if pairing in TURNED else [pair(z1, z2)]


class Raw(nn.Module):
    """What no loss trains, in a model's place: the input as it is, or what counts in it.

    An encoder must beat it.
    """

    def __init__(self, encoder: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = encoder or nn.Flatten()

    def features(self, x: Tensor) -> Tensor:
        return self.encoder(x)
