"""Logarithms of expectations over all positive pairs P and all negative pairs Q of a batch."""

import math

import torch
from torch import Tensor


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
    if alpha in (0, 1):  # there a logarithm is infinite
        return log_p if alpha else log_q
    return torch.logaddexp(log_p + math.log(alpha), log_q + math.log1p(-alpha))
