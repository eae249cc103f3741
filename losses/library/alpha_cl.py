"""The Alpha-CL-direct contrastive loss."""

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Choice, Number, declare


class AlphaCL(ScoreLoss):
    r"""Alpha-CL-direct: each pair is pushed apart by an importance, set directly from its distance.

    .. math:: \sum_j \alpha_j (s_j - s^+), \qquad
       \alpha_j = \frac{e^{-d_j^p/\tau}}{\sum_k e^{-d_k^p/\tau}}, \qquad
       d_j^2 = \tfrac12 \lVert z - z_j \rVert^2 = 1 - s_j

    Tian, "Understanding Deep Contrastive Learning via Coordinate-wise Optimization", NeurIPS 2022,
    equations 4 and 6 and the choice "direct" of alpha in its experiments,
    https://arxiv.org/abs/2201.12680. The importances are detached, and those of an anchor sum to
    one. So p = 2 has tau times the gradient of `decoupled`. ADNCE compares with p = 4 and tau of
    0.5.

    ADNCE's released code (image/model.py, estimator "a_cl") raises the squared distance to the
    power instead. Its alpha_j are proportional to exp(-(1 - s_j)^p / tau), so its p = 4 is the
    paper's p = 8. The released estimator calls two members that its class lacks, so it does not
    run. The rest of its formula is the formula above.

    Args:
        temperature: tau > 0.
        p: power of the distance, > 0; in "adnce_code" of the squared one.
        variant: "paper" or "adnce_code".

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
        variant=Choice("paper", "adnce_code"),
    )
    limits = reduces(
        Limit("decoupled", {"p": 2, "variant": "paper"}, factor="temperature", gradient_only=True),
        Limit(
            "decoupled", {"p": 1, "variant": "adnce_code"}, factor="temperature", gradient_only=True
        ),
    )

    temperature: float = 0.5
    p: float = 4.0
    variant: str = "paper"

    def terms(self, scores: Scores) -> Tensor:
        squared = (1 - scores.neg.detach()).clamp_min(0)  # distance; inf in the holes
        power = self.p / 2 if self.variant == "paper" else self.p
        alpha = torch.softmax(-(squared**power) / self.temperature, dim=1)
        pushed = alpha * scores.filled(scores.neg, 0)
        return pushed.sum(dim=1) - scores.mean_pos(scores.pos)
