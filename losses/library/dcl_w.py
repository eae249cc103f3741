"""The weighted decoupled contrastive loss."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, Towards, inf, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class DCLW(ExponentialLoss):
    r"""Decoupled contrastive learning (DCLW) that weighs hard positives more than easy ones.

    .. math:: -w \frac{s^+}{\tau} + \log \sum_j e^{s_j/\tau}, \qquad
       w = 2 - \frac{e^{s^+/\sigma}}{\mathbb{E}\left[e^{s^+/\sigma}\right]}

    Yeh et al., "Decoupled Contrastive Learning", ECCV 2022, the loss DCLW,
    https://arxiv.org/abs/2110.06848: the negative von Mises-Fisher weight. The mean is over the
    anchors of the batch. A positive whose exponential is more than twice the mean is pushed away.
    Of several positives the mean score is weighed.

    The weights are detached, as in the library lightly. Its releases from May 2022 to 1.5.20 sum
    two logarithms where equation 6 has the logarithm of one sum; 1.5.21 is right. In a code that
    others cite (github.com/raminnakhli/Decoupled-Contrastive-Learning) the weights have a gradient.

    Args:
        temperature: tau > 0.
        sigma: > 0, the width of the weights; large values give `decoupled`.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> z = torch.tensor([[1.0, 0], [0, 1]])
    >>> get_loss("dcl_w", temperature=0.5, sigma=0.5)(both_views(z, z))
    tensor(-1.3069)
    """

    ranges = declare(temperature=TEMPERATURE, sigma=Number(low=0, tune=(0.25, 4), log=True))
    limits = reduces(Limit("decoupled", {"sigma": Towards(inf, near=1e9)}))

    temperature: float = 0.5
    sigma: float = 0.5

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        return torch.cat([log_sums[0], scores.mean_pos(scores.pos).unsqueeze(1)], dim=1)

    def combine(self, terms: Tensor) -> Tensor:
        log_neg, pos = terms.unbind(dim=1)
        weight = 2 - len(pos) * torch.softmax(pos.detach() / self.sigma, dim=0)
        return (log_neg - weight * pos / self.temperature).mean()
