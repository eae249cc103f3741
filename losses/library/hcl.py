"""Contrastive learning with hard negatives."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.library.debiased import log_debias
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import CLASS_PRIOR, TEMPERATURE, Number, declare


class HCL(ExponentialLoss):
    r"""Debiased contrastive learning with weights e^{beta s / tau}: hard negatives count more.

    .. math:: -\log \frac{e^{s^+/\tau}}{[e^{s^+/\tau}] + N g}, \qquad
       g = \max\left\{\frac{\frac1N \sum_j \frac{w_j}{\bar w} e^{s_j/\tau}
       - \tau^+ e^{s^+/\tau}}{1 - \tau^+},\ e^{-1/\tau}\right\}, \qquad
       w_j = e^{\beta s_j/\tau}

    Robinson et al., "Contrastive Learning with Hard Negative Samples", ICLR 2021, equation 4 and
    its estimator below it, https://arxiv.org/abs/2010.04592. As in the released code, the gradient
    goes through the weights too. The pairing says whether the bracketed positive is there (in the
    paper it is). Where it is not, as in `other_view` and `whole_row`, an anchor whose g is at its
    floor has a gradient by its positive alone. At small temperatures that may be most anchors.

    Args:
        temperature: tau > 0.
        tau_plus: probability that a negative is of the anchor's class, 0 <= tau_plus < 1.
        beta: concentration on hard negatives, >= 0; 0 gives `debiased`.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1 = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    >>> z2 = torch.tensor([[0.8, 0.6], [0, 1], [-0.6, 0.8]])
    >>> get_loss("hcl", temperature=0.5, tau_plus=0.1, beta=1.0)(other_view(z1, z2))
    tensor(-1.6374)
    """

    ranges = declare(
        temperature=TEMPERATURE, tau_plus=CLASS_PRIOR, beta=Number(low=0, closed=True, tune=(0, 2))
    )
    limits = reduces(Limit("debiased", {"beta": 0}))

    temperature: float = 0.5
    tau_plus: float = 0.1
    beta: float = 1.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        log_w = self.beta * s / self.temperature
        return log_w + s / self.temperature, log_w

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (weighted, weights) = scores.pos / self.temperature, log_sums
        log_g = log_debias(
            weighted - weights, scores.log_mean_pos(pos), self.tau_plus, self.temperature
        )
        return -scores.mean_pos(scores.log_share(pos, log_g + scores.count.log()))
