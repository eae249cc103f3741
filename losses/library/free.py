"""InfoNCE without a temperature."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.ranges import declare

NEAR = 1e-6  # to a cosine of 1 or -1, whose inverse hyperbolic tangent is infinite


class Free(ExponentialLoss):
    r"""InfoNCE whose logit is the log odds of the cosine, so no temperature is tuned.

    .. math:: -\log \frac{e^{l^+}}{[e^{l^+}] + \sum_j e^{l_j}}, \qquad
       l = 2 \operatorname{artanh} s = \log \frac{1 + s}{1 - s}

    Kim and Kim, "Temperature-Free Loss Function for Contrastive Learning", 2025,
    https://arxiv.org/abs/2501.17683: the inverse hyperbolic tangent in the place of s / tau. The
    logit has the slope of a temperature of 0.5 at s = 0 and grows without bound towards 1; here a
    cosine is kept 1e-6 away from 1 and -1, and beyond has no gradient. The pairing says whether the
    bracketed positive is there. Several positives are averaged, as in `infonce`.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> turned = 0.8 * torch.eye(4) + 0.6 * torch.eye(4).roll(1, 1)
    >>> get_loss("free")(both_views(torch.eye(4), turned))
    tensor(0.7864)
    """

    ranges = declare()

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (log_odds(s),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        (neg,) = log_sums
        return -scores.mean_pos(scores.log_share(log_odds(scores.pos), neg))


def log_odds(s: Tensor) -> Tensor:
    """Return 2 artanh of cosines."""
    return 2 * torch.atanh(s.clamp(NEAR - 1, 1 - NEAR))
