"""Alpha-CL-direct."""

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class AlphaCL(ScoreLoss):
    r"""Alpha-CL-direct: each pair is pushed apart by an importance, set directly from its distance.

    .. math:: \sum_j \alpha_j (s_j - s^+), \qquad
       \alpha_j = \frac{e^{-d_j^p/\tau}}{\sum_k e^{-d_k^p/\tau}}, \qquad
       d_j^2 = \tfrac12 \lVert z - z_j \rVert^2 = 1 - s_j

    Tian, "Understanding Deep Contrastive Learning via Coordinate-wise Optimization", NeurIPS 2022,
    equations 4 and 6 and the choice "direct" of alpha in its experiments,
    https://arxiv.org/abs/2201.12680. The importances are detached; an anchor's add up to one, so
    that p = 2 has tau times the gradient of `decoupled`. ADNCE compares with p = 4 and tau = 0.5.

    Args:
        temperature: tau > 0.
        p: power of the distance, > 0.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("alpha_cl", temperature=0.5, p=4)(both_views(torch.eye(4), torch.eye(4)))
    tensor(-1.)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        p=Number(low=0, tune=(1, 8), log=True),
    )

    def __init__(self, temperature: float = 0.5, p: float = 4.0) -> None:
        super().__init__()
        self.temperature = self.checked("temperature", temperature)
        self.p = self.checked("p", p)

    def terms(self, scores: Scores) -> Tensor:
        distance = (1 - scores.neg).clamp_min(0).sqrt()  # inf in the holes
        alpha = torch.softmax(-(distance**self.p) / self.temperature, dim=1).detach()
        pushed = alpha * scores.neg.masked_fill(scores.hole, 0)
        return pushed.sum(dim=1) - scores.mean_pos(scores.pos)
