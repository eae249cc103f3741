r"""Mutual information from the scores of a critic, as RényiCL estimates it.

Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
2022, appendix C, https://arxiv.org/abs/2208.06270. P are the positive pairs, Q the negative ones.
The critic that is best for an objective of skew alpha is, up to a factor Z, the density ratio r as
r / (alpha r + 1 - alpha).
"""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.expectation import log_mean, log_mix


def corrected(scores: Scores, alpha: float) -> tuple[Tensor, Tensor]:
    r"""The estimate with one Z for the batch (C.1), and the share of pairs that have none.

    .. math:: \hat Z = \alpha\, \mathbb{E}_P[e^f] + (1 - \alpha)\, \mathbb{E}_Q[e^f], \qquad
       \hat r = \frac{(1 - \alpha)\, e^f}{\hat Z - \alpha e^f}, \qquad
       \hat I = \mathbb{E}_P[\log \hat r]

    A pair of e^f >= Z / alpha has no density ratio, of which the paper says nothing: here it is
    left out, and counted. Both scalars, the first in nats.
    """
    means = torch.cat([scores.log_mean_pos(scores.pos), scores.log_mean_neg(scores.neg)], dim=1)
    log_share = scores.pos - log_mix(alpha, *log_mean(means))  # of Z
    rest = torch.log1p(-alpha * log_share.exp())  # nan or -inf where there is no ratio
    log_r = math.log1p(-alpha) + log_share - rest
    defined = log_r.isfinite()
    return log_r[defined].mean(), 1 - defined.to(log_r.dtype).mean()


def by_anchor(scores: Scores) -> Tensor:
    r"""Return the estimate of each anchor with a Z of its own (Algorithm 2), (a,).

    .. math:: \hat I = \mathbb{E}_P[f] - \mathbb{E}_x \log \mathbb{E}_{y \sim Q}[e^{f(x, y)}]

    The skew cancels in it, and every pair has a ratio.
    """
    return scores.mean_pos(scores.pos) - scores.log_mean_neg(scores.neg).squeeze(1)
