"""The Donsker-Varadhan objective for mutual information."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mean
from contrastbench.losses.ranges import TEMPERATURE, declare


class DV(ExponentialLoss):
    r"""Donsker-Varadhan: the KL divergence between positive and negative pairs, not skewed (MINE).

    .. math:: -\mathbb{E}_P[f] + \log \mathbb{E}_Q[e^f], \qquad f = \frac{s}{\tau}

    Donsker and Varadhan 1983, as equation 1 of Lee and Shin, "RényiCL: Contrastive Representation
    Learning with Skew Rényi Divergence", NeurIPS 2022, https://arxiv.org/abs/2208.06270; MINE is
    https://arxiv.org/abs/1801.04062. P are all positive pairs of the batch, Q all
    negative ones, and the mean is taken for each anchor first; one logarithm.

    Args:
        temperature: tau > 0.

    Raises:
        ValueError: temperature out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> get_loss("dv", temperature=0.5)(query_key(torch.eye(4), torch.eye(4)))
    tensor(-2.)
    """

    ranges = declare(temperature=TEMPERATURE)

    temperature: float = 0.5

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        mean = scores.mean_pos(scores.pos / self.temperature).unsqueeze(1)
        return torch.cat([mean, log_sums[0] - scores.count.log()], dim=1)

    def combine(self, terms: Tensor) -> Tensor:
        return log_mean(terms[:, 1]) - terms[:, 0].mean()
