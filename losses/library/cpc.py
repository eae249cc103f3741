"""Contrastive predictive coding with a skew."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mix
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import SKEW, TEMPERATURE, declare


class CPC(ExponentialLoss):
    r"""Alpha-CPC: InfoNCE with a chosen share of the positive in the denominator.

    .. math:: -\log \frac{e^{f^+}}{\alpha e^{f^+} + \frac{1-\alpha}{K} \sum_j e^{f_j}}, \qquad
       f = \frac{s}{\tau}

    Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
    2022, equation 2, https://arxiv.org/abs/2208.06270, after Poole et al. 2019,
    https://arxiv.org/abs/1905.06922. alpha = 1 / (K + 1) gives InfoNCE - log(K + 1). The pairing's
    own say on the denominator is not asked.

    Args:
        temperature: tau > 0.
        alpha: the skew, 0 <= alpha <= 1; the default is 2^-16, as in RényiCL.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("cpc", temperature=0.5, alpha=0.5)(both_views(torch.eye(4), torch.eye(4)))
    tensor(-0.5662)
    """

    ranges = declare(temperature=TEMPERATURE, alpha=SKEW)
    limits = reduces(Limit("decoupled", {"alpha": 0}, constant=True))

    temperature: float = 0.5
    alpha: float = 2**-16

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (neg,) = scores.pos / self.temperature, log_sums
        return scores.mean_pos(log_mix(self.alpha, pos, neg - scores.count.log()) - pos)
