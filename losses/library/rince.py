"""The RINCE loss: robust InfoNCE."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, Towards, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class RINCE(ExponentialLoss):
    r"""Robust InfoNCE: between InfoNCE and a loss that noisy positives cannot mislead.

    .. math:: -\frac{e^{q s^+/\tau}}{q} +
       \frac{\left(\lambda \left([e^{s^+/\tau}] + \sum_j e^{s_j/\tau}\right)\right)^q}{q}

    Chuang et al., "Robust Contrastive Learning against Noisy Views", CVPR 2022, equation 5,
    https://arxiv.org/abs/2201.04309. The pairing says whether the bracketed positive is there (in
    the paper it is). For q to 0 it is InfoNCE + log(lambda), for q = 1 a symmetric loss. The
    released MoCo v3 code multiplies by 2 tau. The loss grows as e^{q / tau}: in float32 keep 2 q /
    tau below 88.

    Args:
        temperature: tau > 0.
        q: robustness, 0 < q <= 1.
        lam: lambda, density of the negatives' term, 0 < lam <= 1.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("rince", temperature=0.5, q=0.5, lam=0.01)(both_views(torch.eye(4), torch.eye(4)))
    tensor(-4.7047)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        q=Number(low=0, high=1, closed="high", tune=(0.01, 1), log=True),
        lam=Number(low=0, high=1, closed="high", tune=(0.001, 1), log=True),
    )
    limits = reduces(Limit("infonce", {"q": Towards(0, near=1e-9)}, constant=True))

    temperature: float = 0.5
    q: float = 0.5
    lam: float = 0.01

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (neg,) = scores.pos / self.temperature, log_sums
        ratio = math.log(self.lam) - scores.log_share(pos, neg)  # log(lambda (pos + neg) / pos)
        # a product, because the two powers are large and nearly equal where the negatives are few,
        # or q is small
        return scores.mean_pos((self.q * pos).exp() * torch.expm1(self.q * ratio)) / self.q
