"""Logarithms of expectations over the positive pairs P and the negative pairs Q of a batch.

An expectation is the mean over each anchor's pairs, averaged over the anchors. Where anchors have
unequal numbers of pairs, as in `same_class`, it is not the mean over all pairs of the batch.
"""

import math

import torch
from torch import Tensor

NEAR_ONE = 1e-3  # there 1 / (order - 1) magnifies the rounding of a logarithm


def log_mean(log_x: Tensor) -> Tensor:
    """Log of the mean over the anchors, (A, k) -> (k,), of the logs of each anchor's own means.

    >>> log_mean(torch.tensor([[1.0], [3.0]]).log()).exp()
    tensor([2.])
    """
    return torch.logsumexp(log_x, dim=0) - math.log(len(log_x))


def log_mix(alpha: float, log_p: Tensor, log_q: Tensor) -> Tensor:
    """Log of the skewed mean alpha p + (1 - alpha) q.

    >>> log_mix(0.5, torch.tensor(2.0).log(), torch.tensor(4.0).log()).exp()
    tensor(3.)
    """
    if alpha in (0, 1):  # there logaddexp has no second derivative
        return log_p if alpha else log_q
    return torch.logaddexp(log_p + math.log(alpha), log_q + math.log1p(-alpha))


def near_one(order: float) -> bool:
    """Return whether float32 cannot divide a logarithm by order - 1."""
    return abs(order - 1) < NEAR_ONE


def log_means(terms: Tensor, order: float) -> Tensor:
    """`log_mean` of (A, k) terms, where the first are means of e^x - 1 if the order is near 1.

    >>> log_means(torch.tensor([[0.3], [0.5]]).mul(1e-7).expm1(), 1 + 1e-7) / 1e-7
    tensor([0.4000])
    """
    logs = log_mean(terms)
    if near_one(order):
        return torch.cat([torch.log1p(terms[:, :1].mean(dim=0)), logs[1:]])
    return logs
