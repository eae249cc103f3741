"""Numbers that a loss keeps of each training sample, and moves with each batch that has it."""

import math

import torch
from torch import Tensor

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, unless

NOT_PREPARED = (
    "keeps numbers of each training sample: call its prepare_samples(n) with their number first"
)
NEEDS_INDEX = (
    "keeps numbers of each training sample, and the contrast has no index: give "
    "indexed(contrast, rows) of contrastbench.losses, with the training set's row of each sample"
)


def index_of(loss: Loss, contrast: Contrast, samples: int) -> Tensor:
    """Return (A,) the training sample of each anchor."""
    if not samples:
        raise UserError(f"{loss.name} {NOT_PREPARED}")
    if contrast.index is None:
        raise UserError(f"{loss.name} {NEEDS_INDEX}")
    if contrast.index.device.type == "cpu":  # elsewhere to ask would wait for the device
        wrong = (contrast.index < 0) | (contrast.index >= samples)
        message = f"index must be a row from 0 to {samples - 1}, as prepare_samples was told"
        unless(wrong, contrast.index, message)
    return contrast.index


def moving_average(log_kept: Tensor, log_new: Tensor, gamma: float) -> Tensor:
    """Return log((1 - gamma) kept + gamma new), or log(new) where nothing is kept yet.

    >>> moving_average(torch.tensor([0.0, -math.inf]), torch.tensor([0.0, 2.0]), 0.5)
    tensor([0., 2.])
    """
    kept = log_kept + (math.log1p(-gamma) if gamma < 1 else -math.inf)
    average = torch.logaddexp(kept, log_new + math.log(gamma))
    return torch.where(log_kept.isneginf(), log_new, average)


def mean_by(index: Tensor, x: Tensor, samples: int) -> Tensor:
    """Return (A,) for each anchor the mean of x over the anchors of its sample.

    >>> mean_by(torch.tensor([1, 0, 1]), torch.tensor([1.0, 5.0, 3.0]), 2)
    tensor([2., 5., 2.])
    """
    pair = torch.stack([x, torch.ones_like(x)], dim=1)
    total, count = x.new_zeros(samples, 2).index_add_(0, index, pair)[index].unbind(dim=1)
    return total / count


def log_mean_by(index: Tensor, log_x: Tensor, samples: int) -> Tensor:
    """Return (A,) for each anchor the log of the mean of x over the anchors of its sample."""
    lowest = log_x.new_full((samples,), -math.inf)
    peak = lowest.scatter_reduce_(0, index, log_x, "amax")[index]
    return peak + mean_by(index, (log_x - peak).exp(), samples).log()
