"""The generalised lifted structure loss of metric learning."""

from types import MappingProxyType

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.library.npair import distance
from contrastbench.losses.ranges import Number, declare


class Lifted(ExponentialLoss):
    r"""Generalised lifted structure: all positives of an anchor against all its negatives.

    .. math:: \Bigl[\log \sum_i e^{d^+_i} + \log \sum_j e^{m - d_j}\Bigr]_+, \qquad
       d = \lVert z - z' \rVert_2 = \sqrt{2 - 2 s}

    Hermans et al., "In Defense of the Triplet Loss for Person Re-Identification", 2017, section 2,
    https://arxiv.org/abs/1703.07737, after Song et al., "Deep Metric Learning via Lifted Structured
    Feature Embedding", CVPR 2016, https://arxiv.org/abs/1511.06452, where each positive pair has
    its own term. With many negatives the sum is above 0, so that the margin adds a constant and
    moves no gradient.

    Args:
        margin: m > 0, a Euclidean distance of unit vectors.

    Raises:
        ValueError: margin out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("lifted", margin=1.0)(both_views(torch.eye(4), torch.eye(4)))
    tensor(1.3775)
    """

    declined_laws = MappingProxyType({"repeated positives": "it sums over positives"})
    ranges = declare(margin=Number(low=0, tune=(0.25, 2), log=True))

    margin: float = 1.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (-distance(s),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        near = scores.log_sum_pos(distance(scores.pos))
        return (near + self.margin + log_sums[0]).relu().squeeze(1)
