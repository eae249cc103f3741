"""The circle loss of metric learning."""

from types import MappingProxyType

from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.ranges import Number, declare


class Circle(ExponentialLoss):
    r"""Circle loss: each score is paced by its own distance from its optimum.

    .. math:: \log\Bigl(1 + \sum_j e^{\gamma\, [s_j + m]_+ (s_j - m)}
       \sum_i e^{-\gamma\, [1 + m - s^+_i]_+ (s^+_i - 1 + m)}\Bigr)

    Sun et al., "Circle Loss: A Unified Perspective of Pair Similarity Optimization", CVPR 2020,
    section 3, https://arxiv.org/abs/2002.10857, with its choice of optima 1 + m and -m and of
    margins 1 - m and m. The paces in brackets are detached, as in the paper's gradients. The sums
    are over all positives and all negatives of an anchor.

    Args:
        margin: m, the relaxation; the paper's for fine-grained images.
        gamma: > 0, the scale; the paper's for fine-grained images.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("circle", gamma=1.0)(both_views(torch.eye(4), torch.eye(4)))
    tensor(1.6784)
    """

    declined_laws = MappingProxyType(
        {"repeated positives": "it sums over all pairs of a positive and a negative"}
    )
    ranges = declare(
        margin=Number(low=0, high=1, tune=(0.1, 0.5)), gamma=Number(low=0, tune=(4, 256), log=True)
    )

    margin: float = 0.4
    gamma: float = 80.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (self.gamma * (s.detach() + self.margin).relu() * (s - self.margin),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, m = scores.pos, self.margin
        near = -self.gamma * (1 + m - pos.detach()).relu() * (pos - 1 + m)
        return -logsigmoid(-scores.log_sum_pos(near) - log_sums[0]).squeeze(1)
