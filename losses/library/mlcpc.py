"""Multi-label contrastive predictive coding."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mean, log_mix
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import SKEW, TEMPERATURE, declare


class MLCPC(ExponentialLoss):
    r"""Alpha-MLCPC: the skew KL divergence between positive and negative pairs.

    .. math:: -\mathbb{E}_P[f] + \log\left(\alpha\, \mathbb{E}_P[e^f]
       + (1-\alpha)\, \mathbb{E}_Q[e^f]\right), \qquad f = \frac{s}{\tau}

    Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
    2022, equation 3, https://arxiv.org/abs/2208.06270, after Song and Ermon 2020,
    https://arxiv.org/abs/2007.09852. P are all positive pairs of the batch, Q all negative ones,
    and the mean is taken for each anchor first; one logarithm for the whole batch.

    Args:
        temperature: tau > 0.
        alpha: the skew, 0 <= alpha <= 1; 0 gives `dv`, the default is 2^-16, as in RényiCL.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> get_loss("mlcpc", temperature=0.5, alpha=0.5)(query_key(torch.eye(4), torch.eye(4)))
    tensor(-0.5662)
    """

    ranges = declare(temperature=TEMPERATURE, alpha=SKEW)
    limits = reduces(Limit("dv", {"alpha": 0}))

    temperature: float = 0.5
    alpha: float = 2**-16

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos = scores.pos / self.temperature
        means = [
            scores.mean_pos(pos).unsqueeze(1),
            scores.log_mean_pos(pos),
            log_sums[0] - scores.count.log(),
        ]
        return torch.cat(means, dim=1)

    def combine(self, terms: Tensor) -> Tensor:
        log_p, log_q = log_mean(terms[:, 1:])
        return log_mix(self.alpha, log_p, log_q) - terms[:, 0].mean()
