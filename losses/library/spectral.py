"""The spectral contrastive loss."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import SummedLoss
from contrastbench.losses.ranges import Number, declare


class Spectral(SummedLoss):
    r"""Spectral contrastive loss: negatives are pushed towards a right angle by squared scores.

    .. math:: -2\, s^+ + \mu\, \frac1N \sum_j s_j^2

    HaoChen et al., "Provable Guarantees for Self-Supervised Deep Learning with Spectral Contrastive
    Loss", NeurIPS 2021, section 3.2, https://arxiv.org/abs/2106.04156. There embeddings have any
    length. The released code projects those longer than the square root of mu onto that length, and
    divides the loss by mu. Here all embeddings have that length, so this is the code's loss of
    long embeddings.

    Args:
        mu: > 0, the squared length of the embeddings; 1 in the released configuration of CIFAR-10.

    Raises:
        ValueError: mu out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1 = torch.tensor([[1.0, 0], [0, 1]])
    >>> z2 = torch.tensor([[0.8, 0.6], [0, 1]])
    >>> get_loss("spectral")(other_view(z1, z2))
    tensor(-1.6200)
    """

    ranges = declare(mu=Number(low=0, tune=(0.3, 100), log=True))

    mu: float = 1.0

    def summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (s.square(),)

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        return self.mu * (sums[0] / scores.count).squeeze(1) - 2 * scores.mean_pos(scores.pos)
