"""The multi-similarity loss of metric learning."""

from types import MappingProxyType

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.library.proxy_anchor import log_one_plus_sum
from contrastbench.losses.ranges import SCORE, Number, declare


class MultiSimilarity(ScoreLoss):
    r"""Multi-similarity: hard pairs are chosen by their scores, then weighed by them.

    .. math:: \frac1\alpha \log\Bigl(1 + \sum_{i \in I} e^{-\alpha (s^+_i - \lambda)}\Bigr)
       + \frac1\beta \log\Bigl(1 + \sum_{j \in J} e^{\beta (s_j - \lambda)}\Bigr)

    .. math:: I = \{i: s^+_i < \max_j s_j + \epsilon\}, \qquad
       J = \{j: s_j > \min_i s^+_i - \epsilon\}

    Wang et al., "Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning", CVPR
    2019, section 4, https://arxiv.org/abs/1904.06627: mining, then weighting. An anchor without
    hard pairs has a loss of zero and stays in the mean.

    Args:
        alpha: > 0, the scale of positives.
        beta: > 0, the scale of negatives.
        base: lambda, the score at which pairs weigh alike.
        epsilon: > 0, how far beyond the hardest pair others are hard too; from 2 on all pairs are.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> loss = get_loss("multi_similarity", epsilon=2.0, beta=2.0)
    >>> loss(both_views(torch.eye(4), torch.eye(4)))
    tensor(0.7393)
    """

    declined_laws = MappingProxyType({"repeated positives": "it sums over positives"})
    ranges = declare(
        alpha=Number(low=0, tune=(1, 8), log=True),
        beta=Number(low=0, tune=(10, 80), log=True),
        base=SCORE,
        epsilon=Number(low=0, tune=(0.05, 1), log=True),
    )

    alpha: float = 2.0
    beta: float = 50.0
    base: float = 0.5
    epsilon: float = 0.1

    def terms(self, scores: Scores) -> Tensor:
        pos, neg, padding = scores.pos, scores.neg, scores.padding
        hardest = pos.masked_fill(padding, torch.inf).amin(dim=1, keepdim=True)
        near = ~(padding | (pos >= neg.amax(dim=1, keepdim=True) + self.epsilon))
        far = (neg > hardest - self.epsilon).to(neg.dtype)  # no hole's -inf is
        s = scores.filled(neg, 0)
        pulled = log_one_plus_sum(-self.alpha * (pos - self.base), near, dim=1) / self.alpha
        return pulled + log_one_plus_sum(self.beta * (s - self.base), far, dim=1) / self.beta
