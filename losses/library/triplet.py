"""The triplet loss of metric learning."""

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.library.npair import distance
from contrastbench.losses.ranges import Choice, Number, declare

FEW = 8  # columns that are compared with all others one after the other
# of cosines; a positive that is among the keys is not semi-hard by luck of rounding
COSINE_GAP = 1e-6


class Triplet(ScoreLoss):
    r"""Triplet loss: a positive is nearer than a negative, by a margin.

    .. math:: \left[d^+ - d_j + m\right]_+, \qquad d = \lVert z - z' \rVert_2 = \sqrt{2 - 2 s}

    Hermans et al., "In Defense of the Triplet Loss for Person Re-Identification", 2017, section 2,
    https://arxiv.org/abs/1703.07737, after Schroff et al., "FaceNet", CVPR 2015,
    https://arxiv.org/abs/1503.03832, which squares the distances. It is the mean over the triplets
    of the batch that `mining` chooses, zeros included:

    - "all": every anchor with each of its positives and each of its negatives (batch all),
    - "semihard": those of them whose negative is farther than the positive, by less than the
      margin; the loss is zero where there are none,
    - "hard": one for each anchor, of its farthest positive and its nearest negative (batch hard).

    Args:
        margin: m > 0, a Euclidean distance of unit vectors, which is at most 2.
        mining: "all", "semihard" or "hard".

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1 = torch.tensor([[1.0, 0], [0, 1]])
    >>> z2 = torch.tensor([[0.0, 1], [0, 1]])
    >>> get_loss("triplet", margin=0.5)(other_view(z1, z2))
    tensor(0.5000)
    """

    ranges = declare(
        margin=Number(low=0, tune=(0.05, 1), log=True), mining=Choice("all", "semihard", "hard")
    )

    margin: float = 0.2
    mining: str = "all"

    def terms(self, scores: Scores) -> Tensor:
        """(a, 2) the sum over each anchor's triplets, and their number."""
        pos, neg = distance(scores.pos), distance(scores.neg)
        padding = scores.padding
        if self.mining == "hard":
            farthest = pos.masked_fill(padding, -torch.inf).amax(dim=1)
            nearest = scores.filled(neg, torch.inf).amin(dim=1)
            single = (farthest - nearest + self.margin).relu()
            return torch.stack([single, torch.ones_like(single)], dim=1)
        of_pos, of_neg = self.counts(scores, pos.detach(), neg.detach(), padding)
        total = (of_pos * (pos + self.margin)).sum(dim=1)
        total = total - (of_neg * scores.filled(neg, 0)).sum(dim=1)
        every = (~padding).sum(dim=1) * scores.count.squeeze(1)
        return torch.stack([total, every if self.mining == "all" else of_pos.sum(dim=1)], dim=1)

    def counts(
        self, scores: Scores, pos: Tensor, neg: Tensor, padding: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(a, P) and (a, K) the number of triplets above zero that each pair is in.

        The sum over triplets needs no more than these, so no tensor has an entry for each triplet.
        """
        far, most = scores.filled(neg, torch.inf), pos + self.margin
        of_pos = count_below(far, most)
        of_neg = pos.shape[1] - count_below(most.masked_fill(padding, -torch.inf), far, right=True)
        if self.mining == "semihard":
            least = distance(scores.pos.detach() - COSINE_GAP)
            of_pos = of_pos - count_below(far, least, right=True)
            nearer = count_below(least.masked_fill(padding, torch.inf), far)
            of_neg = of_neg - (~padding).sum(dim=1, keepdim=True) + nearer
        return of_pos.masked_fill(padding, 0), scores.filled(of_neg, 0)

    def combine(self, terms: Tensor) -> Tensor:
        total, triplets = terms.sum(dim=0)
        return total / triplets.clamp_min(1)


def count_below(x: Tensor, bound: Tensor, right: bool = False) -> Tensor:
    """Count the x of each row that are below each bound of that row, or right at it.

    >>> count_below(torch.tensor([[3.0, 1, 2]]), torch.tensor([[2.0, 9]])).tolist()
    [[1.0, 3.0]]
    """
    # passes over the longer one, each faster than a part of a sort
    if bound.shape[1] <= FEW:
        below = [less(x, column, right).sum(dim=1) for column in bound.split(1, dim=1)]
        return torch.stack(below, dim=1)
    if x.shape[1] <= FEW:
        columns = x.split(1, dim=1)
        return sum((less(column, bound, right) for column in columns), torch.zeros_like(bound))
    return torch.searchsorted(x.sort(dim=1).values, bound.contiguous(), right=right).to(x.dtype)


def less(x: Tensor, bound: Tensor, right: bool) -> Tensor:
    """(a, K) 1 where x is below the bound, or right at it, else 0: faster than true and false."""
    compare = torch.le if right else torch.lt
    return compare(x, bound, out=x.new_empty(torch.broadcast_shapes(x.shape, bound.shape)))
