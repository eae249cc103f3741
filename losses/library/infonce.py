"""The InfoNCE contrastive loss."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.ranges import TEMPERATURE, declare


class InfoNCE(ExponentialLoss):
    r"""InfoNCE, also NT-Xent: -log of the positive's share of the denominator.

    .. math:: -\log \frac{e^{s^+/\tau}}{[e^{s^+/\tau}] + \sum_j e^{s_j/\tau}}

    The pairing says whether the bracketed positive is there: SimCLR (Chen et al. 2020, eq. 1) yes;
    GraphCL (You et al. 2020, eq. 3) and ADNCE's eq. 1 no, the latter with a mean for the sum;
    SimCSE (Gao et al. 2021, eq. 1) has it as one of the keys. Several positives are averaged,
    each over a denominator without the others: that is SINCERE (Feeney and Hughes 2023,
    https://arxiv.org/abs/2309.14277), not `supcon`.

    https://arxiv.org/abs/2002.05709 (SimCLR), https://arxiv.org/abs/2010.13902 (GraphCL),
    https://arxiv.org/abs/2104.08821 (SimCSE), https://arxiv.org/abs/1807.03748 (the name)

    Args:
        temperature: tau > 0.

    Raises:
        ValueError: temperature out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("infonce", temperature=0.5)(both_views(torch.eye(4), torch.eye(4)))
    tensor(0.5944)
    """

    ranges = declare(temperature=TEMPERATURE)

    temperature: float = 0.5

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (neg,) = scores.pos / self.temperature, log_sums
        return -scores.mean_pos(scores.log_share(pos, neg))
