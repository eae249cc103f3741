"""The mean-variance contrastive loss."""

from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, Towards, inf, reduces
from contrastbench.losses.ranges import TEMPERATURE, declare


class MeanVariance(ScoreLoss):
    r"""The second-order expansion of InfoNCE: mean and variance of the negatives' scores.

    .. math:: -s^+ + \mathbb{E}_{Q_0}[s] + \frac{1}{2\tau} \mathbb{V}_{Q_0}[s]

    Wu et al., "Understanding Contrastive Learning via Distributionally Robust Optimization",
    NeurIPS 2023, equation 8, https://arxiv.org/abs/2310.11048. It approximates tau times InfoNCE
    without the positive in the denominator, for large tau.

    Args:
        temperature: tau > 0.

    Raises:
        ValueError: temperature out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1 = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    >>> z2 = torch.tensor([[0.8, 0.6], [0, 1], [-0.6, 0.8]])
    >>> get_loss("mean_variance", temperature=0.5)(other_view(z1, z2))
    tensor(-0.7133)
    """

    ranges = declare(temperature=TEMPERATURE)
    limits = reduces(
        Limit(
            "decoupled",
            {"temperature": Towards(inf, near=1e3)},
            constant=True,
            factor="temperature",
        )
    )

    temperature: float = 0.5

    def terms(self, scores: Scores) -> Tensor:
        s = scores.filled(scores.neg, 0)
        mean = scores.mean_neg(s)
        variance = scores.mean_neg((s - mean).square())
        return (mean + variance / (2 * self.temperature)).squeeze(1) - scores.mean_pos(scores.pos)
