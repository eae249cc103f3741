"""The sigmoid loss of SigLIP."""

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import SigmoidLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Choice, Number, declare


class SigLIP(SigmoidLoss):
    r"""Sigmoid: tells positive from negative pairs one by one, with learned temperature and bias.

    .. math:: \frac1P \sum_p \log\left(1 + e^{-(t s^+_p + b)}\right)
       + \sum_j \log\left(1 + e^{t s_j + b}\right), \qquad t = e^{t'}

    Zhai et al., "Sigmoid Loss for Language Image Pre-Training", ICCV 2023, section 3.2 and
    Algorithm 1, https://arxiv.org/abs/2303.15343. There the pairs are those of `other_view`. The
    logarithm t' and b are parameters of the loss, `log_scale` and `bias`, and learn at the
    encoder's rate without decay. Whether a pairing has the positive in a denominator, or a mean in
    it, is nothing to this loss.

    Args:
        temperature: 1 / t at the start, > 0.
        bias: b at the start; the paper's -10 lets the many negatives begin without a large loss.
        reduction: "sum" of an anchor's negatives, as in the paper, or their "mean"; with bias 0 the
            mean begins as `jsd`.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> get_loss("siglip")(other_view(torch.eye(4), torch.eye(4)))
    tensor(0.6933, grad_fn=<MeanBackward0>)
    """

    ranges = declare(
        temperature=TEMPERATURE, bias=Number(tune=(-10, 0)), reduction=Choice("sum", "mean")
    )
    limits = reduces(Limit("jsd", {"bias": 0, "reduction": "mean"}, constant=True, at_start=True))

    temperature: float = 0.1
    bias: float | Tensor = -10.0
    reduction: str = "sum"

    def _set_up(self) -> None:
        self.bias = nn.Parameter(torch.tensor(self.bias))
        self.log_scale = nn.Parameter(-torch.tensor(self.temperature).log())

    def logits(self, s: Tensor) -> Tensor:
        return self.log_scale.exp() * s + self.bias

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        (of_neg,) = sums
        if self.reduction == "mean":
            of_neg = of_neg / scores.count
        return scores.mean_pos(softplus(-self.logits(scores.pos))) + of_neg.squeeze(1)
