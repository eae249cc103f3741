"""Global orthogonal regularisation, also the spread-out regulariser."""

from types import MappingProxyType

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.exponential import SummedLoss
from contrastbench.losses.ranges import Number, declare


class Gor(SummedLoss):
    r"""Spread-out regulariser: negatives have the moments of random points on the sphere.

    .. math:: w_1 M_1^2 + w_2 \max(0, M_2 - 1/d), \qquad
       M_k = \mathbb{E}\left[s_j^k\right] \ \text{over the negatives}

    Zhang et al., "Learning Spread-out Local Feature Descriptors", ICCV 2017,
    https://arxiv.org/abs/1708.06320, equations 6 to 8: two random unit vectors of d dimensions have
    cosines of mean 0 and second moment 1/d. Add it to a loss: `infonce + gor`. The pairing says
    which pairs are negatives, and means are taken for each anchor first. With negatives of the own
    view (`own_view`) it is GlobalOrthogonalRegularizationLoss of sentence-transformers, which takes
    each column of sentences for itself and then their mean.

    Args:
        mean_weight: w_1 >= 0.
        second_moment_weight: w_2 >= 0.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, own_view
    >>> get_loss("gor")(own_view(torch.ones(4, 1), torch.ones(4, 1)))
    tensor(1.)
    """

    declined_laws = MappingProxyType({"positives": "a regulariser, beside a loss"})
    ranges = declare(
        mean_weight=Number(low=0, closed="low", tune=(0.1, 10), log=True),
        second_moment_weight=Number(low=0, closed="low", tune=(0.1, 10), log=True),
    )

    mean_weight: float = 1.0
    second_moment_weight: float = 1.0

    def summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return s, s**2

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        return torch.cat(sums, dim=1) / scores.count

    def conclude(self, contrast: Contrast, terms: Tensor) -> Tensor:
        first, second = terms.mean(dim=0)
        beyond = torch.relu(second - 1 / contrast.anchor.shape[1])
        return self.mean_weight * first**2 + self.second_moment_weight * beyond
