"""The KoLeo regulariser: entropy of the embeddings by their nearest neighbours."""

from types import MappingProxyType

from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.library.npair import distance
from contrastbench.losses.ranges import declare

LEAST = 1e-8  # is added to distances, as DINOv2's code does


class Koleo(ScoreLoss):
    r"""KoLeo: each embedding is far from its nearest negative.

    .. math:: -\log\left(\min_j d_j + 10^{-8}\right), \qquad d = \lVert z - z' \rVert_2

    Sablayrolles et al., "Spreading vectors for similarity search", ICLR 2019,
    https://arxiv.org/abs/1806.03198, equation 2: the entropy's estimator of Kozachenko and
    Leonenko, without its constants. DINOv2 (Oquab et al. 2024, https://arxiv.org/abs/2304.07193)
    adds 0.1 of it, with neighbours in the batch of the own view (`own_view`); so
    `infonce + 0.1*koleo`. The pairing says which embeddings are negatives. Where two coincide the
    gradient is zero.

    >>> import torch
    >>> from contrastbench.losses import get_loss, own_view
    >>> get_loss("koleo")(own_view(torch.eye(4), torch.eye(4)))
    tensor(-0.3466)
    """

    declined_laws = MappingProxyType({"positives": "a regulariser, beside a loss"})
    ranges = declare()

    def terms(self, scores: Scores) -> Tensor:
        nearest = distance(scores.neg.amax(dim=1))
        return 0 * nearest - (nearest + LEAST).log()  # without negatives 0 * inf is nan
