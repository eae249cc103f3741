"""Correlated Gaussians, whose information is known, and what a critic's scores make of it.

    I(X; Y) = -d/2 log(1 - rho^2)

Lee and Shin, RényiCL, NeurIPS 2022, appendix C; the paper prints log(1 - rho / 2).
"""

import math

import torch

from contrastbench.losses.base import Scores

DIMENSIONS = 20


class Critic(Scores):
    """Scores of any size, all of them of negatives."""

    hole = property(lambda self: torch.zeros_like(self.neg, dtype=torch.bool))


def correlation(information):
    """Return the rho that has this information."""
    return math.sqrt(-math.expm1(-2 * information / DIMENSIONS))


def drawn(information, rng, pairs):
    """Return pairs of rows of x and y."""
    x, noise = torch.randn(2, pairs, DIMENSIONS, generator=rng)
    rho = correlation(information)
    return x, rho * x + math.sqrt(1 - rho**2) * noise


def as_scores(f):
    """Return an (n, n) matrix as scores: the diagonal holds the positives."""
    n = len(f)
    apart = f.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)
    return Critic(f.diagonal()[:, None], apart, f.new_full((n, 1), n - 1))


def corrected(scores, alpha, each=False):
    """Return the mean of log((1 - alpha) e^f / (Z - alpha e^f)) over positives.

    Z = alpha E_P[e^f] + (1 - alpha) E_Q[e^f] is the batch's, or `each` anchor's own, as for `cpc`.
    Pairs without a ratio, whose e^f is Z / alpha or more, are left out.
    """

    def log_mean(x):
        pooled = (1,) if each else (0, 1)
        return x.logsumexp(pooled, keepdim=True) - math.log(x[:1].numel() if each else x.numel())

    log_z = math.log1p(-alpha) + log_mean(scores.neg)
    if alpha:
        log_z = torch.logaddexp(log_z, math.log(alpha) + log_mean(scores.pos))
    share = scores.pos - log_z
    ratio = math.log1p(-alpha) + share - torch.log1p(-alpha * share.exp())
    return ratio[ratio.isfinite()].mean()
