"""The Rényi objective without skew."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mean
from contrastbench.losses.limits import Limit, Towards, reduces
from contrastbench.losses.ranges import ORDER, TEMPERATURE, declare


class Renyi(ExponentialLoss):
    r"""Rényi: the divergence of order gamma between positive and negative pairs, not skewed.

    .. math:: -\frac{1}{\gamma - 1} \log \mathbb{E}_P[e^{(\gamma-1) f}]
       + \frac1\gamma \log \mathbb{E}_Q[e^{\gamma f}], \qquad f = \frac{s}{\tau}

    Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
    2022, equation 4, https://arxiv.org/abs/2208.06270. P are all positive pairs of the batch, Q all
    negative ones, and the mean is taken for each anchor first. Its variance explodes (Theorem 4.1),
    hence `rmlcpc`.

    Args:
        temperature: tau > 0.
        gamma: the order, > 0 and not 1; for gamma to 1 it is `dv`. Within 0.001 of 1 float32
            keeps few digits of the value; the gradient is right.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> get_loss("renyi", temperature=0.5, gamma=2.0)(query_key(torch.eye(4), torch.eye(4)))
    tensor(-2.)
    """

    ranges = declare(temperature=TEMPERATURE, gamma=ORDER)
    limits = reduces(Limit("dv", {"gamma": Towards(1, near=1 + 1e-7)}))

    temperature: float = 0.5
    gamma: float = 2.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (self.gamma * (s / self.temperature),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        tilted = scores.log_mean_pos((self.gamma - 1) * (scores.pos / self.temperature))
        return torch.cat([tilted, log_sums[0] - scores.count.log()], dim=1)

    def combine(self, terms: Tensor) -> Tensor:
        tilted, log_q = log_mean(terms)
        loss: Tensor = log_q / self.gamma - tilted / (self.gamma - 1)
        return loss
