"""The Nguyen-Wainwright-Jordan objective for mutual information."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mix
from contrastbench.losses.ranges import SKEW, TEMPERATURE, declare


class NWJ(ExponentialLoss):
    r"""Alpha-NWJ: a variational bound of the skew KL divergence without a logarithm.

    .. math:: -\mathbb{E}_P[f] + \alpha\, \mathbb{E}_P[e^{f-1}]
       + (1-\alpha)\, \mathbb{E}_Q[e^{f-1}], \qquad f = \frac{s}{\tau}

    Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
    2022, appendix C.2, https://arxiv.org/abs/2208.06270; alpha = 0 is Nguyen et al. 2010,
    https://arxiv.org/abs/0809.0853. The loss grows as e^{s / tau}: float32
    holds it for s / tau below 88.

    Args:
        temperature: tau > 0.
        alpha: the skew, 0 <= alpha <= 1; the default is 2^-16, as in RényiCL.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("nwj", temperature=0.5, alpha=0.5)(both_views(torch.eye(4), torch.eye(4)))
    tensor(-0.4569)
    """

    ranges = declare(temperature=TEMPERATURE, alpha=SKEW)

    temperature: float = 0.5
    alpha: float = 2**-16

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (neg,) = scores.pos / self.temperature, log_sums
        mixed = log_mix(self.alpha, scores.log_mean_pos(pos), neg - scores.count.log())
        return (mixed - 1).exp().squeeze(1) - scores.mean_pos(pos)
