"""The loss of RényiCL."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mean, log_mix
from contrastbench.losses.limits import Limit, Towards, reduces
from contrastbench.losses.ranges import ORDER, SKEW, TEMPERATURE, declare


class RMLCPC(ExponentialLoss):
    r"""Rényi-MLCPC: the skew Rényi divergence of order gamma between positive and negative pairs.

    .. math:: -\frac{1}{\gamma - 1} \log \mathbb{E}_P[e^{(\gamma-1) f}]
       + \frac1\gamma \log\left(\alpha\, \mathbb{E}_P[e^{\gamma f}]
       + (1-\alpha)\, \mathbb{E}_Q[e^{\gamma f}]\right), \qquad f = \frac{s}{\tau}

    Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
    2022, section 4.3, https://arxiv.org/abs/2208.06270. P are all positive pairs of the batch, Q
    all negative ones, and the mean is taken for each anchor first. The released code minimises a
    surrogate with detached importance weights that has this gradient; its printed value is not the
    objective. It adds the losses of the two target views without halving.

    Args:
        temperature: tau > 0.
        alpha: the skew, 0 <= alpha <= 1; 0 gives `renyi`, the default is the paper's 2^-16.
        gamma: the order, > 0 and not 1; for gamma to 1 it is `mlcpc`. Within 0.001 of 1 float32
            keeps few digits of the value; the gradient is right.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> loss = get_loss("rmlcpc", temperature=0.5, alpha=0.5, gamma=2.0)
    >>> loss(query_key(torch.eye(4), torch.eye(4)))
    tensor(-0.3375)
    """

    ranges = declare(temperature=TEMPERATURE, alpha=SKEW, gamma=ORDER)
    limits = reduces(
        Limit("renyi", {"alpha": 0}), Limit("mlcpc", {"gamma": Towards(1, near=1 + 1e-7)})
    )

    temperature: float = 0.5
    alpha: float = 2**-16
    gamma: float = 2.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (self.gamma * (s / self.temperature),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos = scores.pos / self.temperature
        means = [
            scores.log_mean_pos((self.gamma - 1) * pos),
            scores.log_mean_pos(self.gamma * pos),
            log_sums[0] - scores.count.log(),
        ]
        return torch.cat(means, dim=1)

    def combine(self, terms: Tensor) -> Tensor:
        tilted, log_p, log_q = log_mean(terms)
        loss: Tensor = log_mix(self.alpha, log_p, log_q) / self.gamma - tilted / (self.gamma - 1)
        return loss
