"""The global contrastive loss of SogCLR."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.memory import index_of, log_mean_by, moving_average
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class SogCLR(ExponentialLoss):
    r"""Decoupled InfoNCE whose denominator is a moving average, kept of each training sample.

    .. math:: -s^+ + \tau \log u, \qquad
       u = (1 - \gamma) \, u_i + \gamma \, \frac1K \sum_j e^{s_j/\tau}, \qquad
       \nabla = -\nabla s^+ + \frac{\tau}{u} \nabla \frac1K \sum_j e^{s_j/\tau}

    Yuan et al., "Provable Stochastic Optimization for Global Contrastive Learning: Small Batch Does
    Not Harm Performance", ICML 2022, https://arxiv.org/abs/2202.12387. The moving average stands
    for the negatives of the whole training set, so that small batches do. After each step of a
    training u_i is the mean of u over the sample's anchors. A sample that is met for the first time
    has the batch's mean. The positive is in the denominator only where it is one of the negatives,
    as in `whole_row`.

    Formula and gradient are those of the library LibAUC 2 (`GCLoss_v1`) in the pairing
    `both_views`, divided by 2: there the two views add up. Its value has the weighted mean of the
    negatives' scores in the place of tau log u, and only its gradient has a meaning. It also takes
    the batch's mean only where all samples of a batch are new.

    The loss needs the number of training samples (`prepare_samples`) and the `index` of a contrast.

    Args:
        temperature: tau > 0, a number: each u_i is an average at this temperature.
        gamma: 0 < gamma <= 1, the share of the batch in the moving average; 1 keeps nothing.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss, indexed
    >>> loss, z = get_loss("sogclr", temperature=0.5), torch.eye(4)
    >>> loss.prepare_samples(100)
    >>> loss(indexed(both_views(z, z), torch.tensor([3, 14, 15, 92])))
    tensor(-1.)
    """

    needs_samples = True
    ranges = declare(
        temperature=TEMPERATURE, gamma=Number(low=0, high=1, closed="high", tune=(0.1, 1))
    )
    limits = reduces(Limit("decoupled", {"gamma": 1}, factor="temperature", constant=True))
    log_u: Tensor

    temperature: float = 0.1
    gamma: float = 0.9

    def _set_up(self) -> None:
        self.register_buffer("log_u", torch.empty(0))

    def prepare_samples(self, samples: int) -> None:
        self.log_u = self.log_u.new_full((samples,), -math.inf)

    def remembered(self) -> dict[str, Tensor]:
        met = self.log_u.isfinite()
        return {"mean_log_u": self.log_u[met].mean()} if met.any() else {}

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        log_mean = log_sums[0] - scores.count.log()
        return torch.cat([scores.mean_pos(scores.pos).unsqueeze(1), log_mean], dim=1)

    def conclude(self, contrast: Contrast, terms: Tensor) -> Tensor:
        samples = len(self.log_u)
        index = index_of(self, contrast, samples)
        log_u = moving_average(self.log_u[index].to(terms.dtype), terms[:, 1].detach(), self.gamma)
        if self.training:
            self.log_u[index] = log_mean_by(index, log_u, samples).to(self.log_u.dtype)
        return self.value(terms, log_u)

    def combine(self, terms: Tensor) -> Tensor:
        """One scalar of samples that are all met for the first time."""
        return self.value(terms, terms[:, 1].detach())

    def value(self, terms: Tensor, log_u: Tensor) -> Tensor:
        """Return the loss of terms with these moving averages."""
        pos, log_mean = terms.unbind(dim=1)
        return (self.temperature * smoothed_log(log_u, log_mean) - pos).mean()


def smoothed_log(log_u: Tensor, log_mean: Tensor) -> Tensor:
    """Return log u, whose gradient is that of the batch's mean, divided by u."""
    ratio = (log_mean - log_u).exp()
    return log_u + ratio - ratio.detach()
