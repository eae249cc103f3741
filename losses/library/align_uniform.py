"""Alignment and uniformity on the hypersphere."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss, log_mean
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import Number, declare


class AlignUniform(ExponentialLoss):
    r"""Alignment of positive pairs plus uniformity of all embeddings on the sphere.

    .. math:: \mathbb{E}_P\left[\lVert z - z^+ \rVert_2^\alpha\right]
       + \lambda \log \mathbb{E}_Q\left[e^{-t \lVert z - z' \rVert_2^2}\right], \qquad
       \lVert z - z' \rVert_2^2 = 2 - 2 s

    Wang and Isola, "Understanding Contrastive Representation Learning through Alignment and
    Uniformity on the Hypersphere", ICML 2020, section 4, https://arxiv.org/abs/2005.10242. P are
    all positive pairs of the batch, Q all negative ones; one logarithm for the whole batch. The
    released code takes Q within each view and averages over the two views. Here the pairing says
    which pairs are negatives, and the mean is taken for each anchor first. The weight of the
    alignment is that of the loss in a sum, as in `0.5*align_uniform`.

    The setting alpha = 2, t = 1 and weight = 1 is `dv` with a temperature of 0.5. The setting
    weight = 0 is the loss of BYOL, which needs a predictor and a stopped gradient.

    Args:
        alpha: > 0, the power of the distance between positives.
        t: > 0, the inverse width of the Gaussian potential.
        weight: lambda >= 0, the weight of the uniformity.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("align_uniform")(both_views(torch.eye(4), torch.eye(4)))
    tensor(-4.)
    """

    ranges = declare(
        alpha=Number(low=0, tune=(1, 4), log=True),
        t=Number(low=0, tune=(0.5, 8), log=True),
        weight=Number(low=0, closed="low", tune=(0.25, 4), log=True),
    )
    limits = reduces(Limit("dv", {"alpha": 2, "t": 1, "weight": 1}, {"temperature": 0.5}))

    alpha: float = 2.0
    t: float = 2.0
    weight: float = 1.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (2 * self.t * (s - 1),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        square = 2 - 2 * scores.pos
        together = square <= 1e-12  # where a root's gradient is not finite
        power = square.masked_fill(together, 1) ** (self.alpha / 2)
        potential = log_sums[0] - scores.count.log()
        align = scores.mean_pos(power.masked_fill(together, 0))
        return torch.cat([align.unsqueeze(1), potential], dim=1)

    def combine(self, terms: Tensor) -> Tensor:
        return terms[:, 0].mean() + self.weight * log_mean(terms[:, 1])
