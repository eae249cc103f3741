"""The decoupled contrastive loss."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, declare


class Decoupled(ExponentialLoss):
    r"""InfoNCE without the positive in the denominator, which has the negatives alone.

    .. math:: -\frac{s^+}{\tau} + \log \sum_j e^{s_j/\tau}

    With `whole_row` the positive is one of the row that is summed over: there it is InfoNCE. But
    for a constant it is with `other_view`, too, which has no positive in InfoNCE's denominator.

    Yeh et al., "Decoupled Contrastive Learning", ECCV 2022, equation 6,
    https://arxiv.org/abs/2110.06848. This is what the library lightly calls DCL.

    Args:
        temperature: tau > 0.

    Raises:
        ValueError: temperature out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("decoupled", temperature=0.5)(both_views(torch.eye(4), torch.eye(4)))
    tensor(-0.2082)
    """

    ranges = declare(temperature=TEMPERATURE)
    limits = reduces(Limit("infonce", constant=True, positive_in_denominator=False))

    temperature: float = 0.5

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        return log_sums[0].squeeze(1) - scores.mean_pos(scores.pos / self.temperature)
