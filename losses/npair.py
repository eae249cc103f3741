"""The (n+1)-tuplet loss of metric learning."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastbench.losses.base import ScoreLoss, Scores, in_range, one_of


class NPair(ScoreLoss):
    r"""N-pair: the positive is more similar than every negative, whatever the pairing says of the denominator.

    .. math:: \log\left(1 + \sum_j e^{(s_j - s^+)/\gamma}\right) \qquad \text{or} \qquad
       \log\left(1 + \sum_j e^{(d^+ - d_j)/\gamma}\right), \quad d = \lVert z - z' \rVert_2

    The first ("cosine") is Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss
    Objective", NeurIPS 2016, equation 6, for unit embeddings and with a temperature gamma; the
    second ("distance") is equation 1 of Chen et al., "Robust Similarity Learning with Difference
    Alignment Regularization" (DASL), ICLR 2024, there with gamma = 0.2.

    Args:
        temperature: gamma > 0.
        similarity: "cosine" or "distance".

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("npair", temperature=1.0)(both_views(torch.eye(4), torch.eye(4)))
    tensor(1.1654)
    """

    def __init__(self, temperature: float = 1.0, similarity: str = "cosine") -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)
        self.similarity = one_of("similarity", similarity, ("cosine", "distance"))

    def terms(self, scores: Scores) -> Tensor:
        pos, neg = scores.pos, scores.neg
        if self.similarity == "distance":
            pos, neg = -distance(pos), (-distance(neg)).masked_fill(scores.hole, -torch.inf)
        total = torch.logsumexp(neg / self.temperature, dim=1, keepdim=True)
        return -scores.mean_pos(logsigmoid(pos / self.temperature - total))


def distance(s: Tensor) -> Tensor:
    """Euclidean distance of unit vectors of cosine s; where they coincide it has no gradient, and gets zero."""
    square = 2 - 2 * s
    return square.where(square > 1e-12, 1).sqrt().where(square > 1e-12, 0)
