"""CL-DRO for a family of divergences."""

import math

from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, Towards, reduces
from contrastbench.losses.ranges import TEMPERATURE, Choice, Number, declare


class PhiDRO(ScoreLoss):
    r"""Distributionally robust contrastive learning: negatives from the worst distribution.

    .. math:: -s^+ + \max_Q \left\{\mathbb{E}_Q[s] - \tau D_\phi(Q \Vert Q_0)\right\}
       = -s^+ + \min_\lambda \left\{\lambda + \tau\, \mathbb{E}_{Q_0}
       \left[\phi^*\left(\tfrac{s - \lambda}{\tau}\right)\right]\right\}

    Wu et al., "Understanding Contrastive Learning via Distributionally Robust Optimization",
    NeurIPS 2023, equations 3 and 10, https://arxiv.org/abs/2310.11048. Q is a distribution near the
    uniform Q0, so its weights are never negative.

    The divergence "kl" has the closed form -s+ + tau log E exp(s / tau). This is tau times InfoNCE
    over the mean of the negatives (Theorem 3.2). The divergence "cressie_read" has phi(x) = (x^k -
    k x + k - 1) / (k (k - 1)), and k to 1 is "kl".

    The divergence "chi2" has phi(x) = (x - 1)^2 / 4. Its conjugate is the paper's x + x^2, although
    the paper prints another factor of phi. It equals mean + variance / tau while no weight is zero.

    Args:
        temperature: tau > 0, the multiplier of the divergence.
        phi: "kl", "chi2" or "cressie_read".
        k: the order of "cressie_read", 1 < k <= 2; the others have none.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1 = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    >>> z2 = torch.tensor([[0.8, 0.6], [0, 1], [-0.6, 0.8]])
    >>> get_loss("phi_dro", temperature=0.5, phi="chi2")(other_view(z1, z2))
    tensor(-0.6433)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        phi=Choice("kl", "chi2", "cressie_read"),
        k=Number(low=1, high=2, closed="high", tune=(1.05, 2)),
    )
    limits = reduces(
        Limit("decoupled", {"phi": "kl"}, constant=True, factor="temperature"),
        Limit("phi_dro", {"phi": "cressie_read", "k": Towards(1, near=1 + 1e-8)}, {"phi": "kl"}),
    )

    temperature: float = 0.5
    phi: str = "kl"
    k: float = 1.5

    def terms(self, scores: Scores) -> Tensor:
        if self.phi == "kl":
            worst = self.temperature * scores.log_mean_neg(scores.neg / self.temperature)
        elif self.phi == "chi2":
            worst = cressie_read(scores, self.temperature / 2, 2.0)
        else:
            worst = cressie_read(scores, self.temperature, self.k)
        return worst.squeeze(1) - scores.mean_pos(scores.pos)


def cressie_read(scores: Scores, tau: float, k: float) -> Tensor:
    """(a, 1) min over lambda of lambda + tau E phi*((s - lambda) / tau).

    The conjugate is phi*(y) = ((1 + (k - 1) y)_+^{k'} - 1) / k with k' = k / (k - 1).
    """
    s = scores.neg.masked_fill(scores.hole, -1)
    lam = worst_lambda(scores, s, tau, k)
    base = (1 + (k - 1) * (s - lam) / tau).clamp_min(0)
    return lam + tau / k * (scores.mean_neg(base ** (k / (k - 1))) - 1)


def worst_lambda(scores: Scores, s: Tensor, tau: float, k: float) -> Tensor:
    """(a, 1) the lambda at which the worst case's weights have mean 1.

    The weights are (1 + (k - 1) (s - lambda) / tau)_+^{1 / (k - 1)}.
    """

    def base(s: Tensor, lam: Tensor) -> Tensor:
        return (1 + (k - 1) * (s - lam) / tau).clamp_min(0)

    fixed = s.detach()
    high = fixed.amax(dim=1, keepdim=True)
    low = fixed.masked_fill(scores.hole, math.inf).amin(dim=1, keepdim=True)
    for _ in range(30):  # halves the interval of at most 2 to 2e-9
        lam = (low + high) / 2
        heavy = scores.mean_neg(base(fixed, lam) ** (1 / (k - 1))) > 1
        low, high = lam.where(heavy, low), high.where(heavy, lam)
    # Newton from here is exact, and its last step, not detached, gives lambda its derivative by the
    # scores
    for x in (fixed, fixed, s):
        weight = base(fixed, lam)
        slope = (weight ** ((2 - k) / (k - 1))).where(weight > 0, 0)
        lam = lam + tau * (scores.mean_neg(base(x, lam) ** (1 / (k - 1))) - 1) / scores.mean_neg(
            slope
        )
    return lam
