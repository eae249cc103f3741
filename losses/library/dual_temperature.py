"""InfoNCE with dual temperature, of SimCo and SimMoCo."""

from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class DualTemperature(ExponentialLoss):
    r"""InfoNCE whose anchors weigh as at a higher temperature, and negatives as at the own one.

    .. math:: -\frac{1 - p_{r\tau}}{1 - p_\tau} \log p_\tau, \qquad
       p_\tau = \frac{e^{s^+/\tau}}{e^{s^+/\tau} + \sum_j e^{s_j/\tau}}

    Zhang et al., "Dual Temperature Helps Contrastive Learning Without Many Negative Samples", CVPR
    2022, https://arxiv.org/abs/2203.17248, with tau = 0.1 and r = 10. The fraction is detached. In
    InfoNCE the gradient of an anchor is in proportion to 1 - p at tau, so easy anchors count for
    nothing in small batches. SimMoCo has a target network without a queue, SimCo has none: the
    recipes query_key and both_ways. Where the pairing leaves the positive out of the denominator
    of the logarithm, the fraction has it still.

    Args:
        temperature: tau > 0, within an anchor.
        ratio: r > 0, the temperature between anchors over tau, `dt_m` in the released code.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> get_loss("dual_temperature", temperature=0.5)(query_key(torch.eye(4), torch.eye(4)))
    tensor(0.8386)
    """

    ranges = declare(temperature=TEMPERATURE, ratio=Number(low=0, tune=(1, 20), log=True))
    limits = reduces(Limit("infonce", {"ratio": 1}))

    temperature: float = 0.1
    ratio: float = 10.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return s / self.temperature, s / (self.ratio * self.temperature)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (within, between) = scores.pos / self.temperature, log_sums
        weight = (logsigmoid(between - pos / self.ratio) - logsigmoid(within - pos)).detach().exp()
        return scores.mean_pos(-weight * scores.log_share(pos, within))
