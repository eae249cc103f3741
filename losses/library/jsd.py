"""The Jensen-Shannon objective for mutual information."""

import math

from torch import Tensor
from torch.nn.functional import softplus

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import SigmoidLoss
from contrastbench.losses.ranges import TEMPERATURE, declare


class JSD(SigmoidLoss):
    r"""Jensen-Shannon: tells positive from negative pairs one by one, by logistic regression.

    .. math:: \mathbb{E}_P[\log(1 + e^{-f})] + \mathbb{E}_Q[\log(1 + e^f)] - 2 \log 2,
       \qquad f = \frac{s}{\tau}

    Sun et al., "InfoGraph", ICLR 2020, equation 5, https://arxiv.org/abs/1908.01000, after Nowozin
    et al. 2016, https://arxiv.org/abs/1606.00709. Minus the loss is a lower bound of twice the
    Jensen-Shannon divergence. It is 0 if the scores tell no pairs apart. In InfoGraph f is the
    inner product of embeddings of any length, and its code takes the mean over all pairs of a
    batch. Here f is a cosine over a temperature, and the mean is taken for each anchor first.

    Args:
        temperature: tau > 0.

    Raises:
        ValueError: temperature out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> get_loss("jsd", temperature=0.5)(query_key(torch.eye(4), torch.eye(4)))
    tensor(-0.5662)
    """

    ranges = declare(temperature=TEMPERATURE)

    temperature: float = 0.5

    def logits(self, s: Tensor) -> Tensor:
        return s / self.temperature

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        of_pos = scores.mean_pos(softplus(-self.logits(scores.pos)))
        return of_pos + (sums[0] / scores.count).squeeze(1) - 2 * math.log(2)
