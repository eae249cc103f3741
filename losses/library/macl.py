"""The loss of model-aware contrastive learning."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class MACL(ScoreLoss):
    r"""InfoNCE whose temperature grows with the alignment of positives, and re-weighted anchors.

    .. math:: -\frac{\log p}{1 - \mathrm{sg}(p)}, \qquad
       p = \frac{e^{s^+/\tau}}{e^{s^+/\tau} + \sum_j e^{s_j/\tau}}, \qquad
       \tau = \tau_0 \left(1 + \alpha (\mathrm{sg}(\overline{s^+}) - A_0)\right)

    Huang et al., "Model-Aware Contrastive Learning: Towards Escaping the Dilemmas", ICML 2023,
    https://arxiv.org/abs/2207.07874. The mean of s^+ is over the positives of the whole batch, and
    sg stops the gradient. The released code computes the same in `both_views`. As there, p has the
    positive in its denominator whatever the pairing says: 1 / (1 - p) undoes what that takes from
    the gradient, which is then that of `decoupled` at this temperature. In `whole_row` the positive
    is one of the s_j too, so p has it twice. The temperature is never below a tenth of tau_0, which
    only positives that point apart would reach.

    Args:
        temperature: tau_0 > 0.
        alpha: how far the temperature follows the alignment, 0 <= alpha <= 1; 0 fixes it.
        threshold: A_0, the alignment at which the temperature is tau_0, 0 <= A_0 <= 1.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("macl", temperature=0.5)(both_views(torch.eye(4), torch.eye(4)))
    tensor(1.5481)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        alpha=Number(low=0, high=1, closed=True, tune=(0, 1)),
        threshold=Number(low=0, high=1, closed=True, tune=(0, 0.8)),
    )
    limits = reduces(Limit("decoupled", {"alpha": 0}, gradient_only=True))

    temperature: float = 0.5
    alpha: float = 0.5
    threshold: float = 0.0

    def terms(self, scores: Scores) -> Tensor:
        alignment = scores.of_batch(mean_pos, torch.mean, negatives=False)
        factor = 1 + self.alpha * (alignment - self.threshold)
        temperature = self.temperature * factor.clamp_min(0.1)
        pos, neg = scores.pos / temperature, scores.neg / temperature
        odds = pos - torch.logsumexp(neg, dim=1, keepdim=True)  # log p / (1 - p)
        # -log p / (1 - p), which is 1 beyond e^80, a number in float32
        known = odds.detach().clamp_max(80)
        value = -(1 + known.exp()) * logsigmoid(known)
        return scores.mean_pos(value - (odds - odds.detach()))  # the gradient by odds is -1


def mean_pos(scores: Scores) -> Tensor:
    """Return (a,) the mean of each anchor's positives."""
    return scores.mean_pos(scores.pos)
