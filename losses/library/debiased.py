"""The debiased contrastive loss."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import CLASS_PRIOR, TEMPERATURE, declare


class Debiased(ExponentialLoss):
    r"""InfoNCE with the negatives' mean corrected for the share of hidden positives among them.

    .. math:: -\log \frac{e^{s^+/\tau}}{[e^{s^+/\tau}] + N g}, \qquad
       g = \max\left\{\frac{\frac1N \sum_j e^{s_j/\tau} - \tau^+ \frac1M \sum_m e^{s^+_m/\tau}}
       {1 - \tau^+},\ e^{-1/\tau}\right\}

    Chuang et al., "Debiased Contrastive Learning", NeurIPS 2020, equations 7 and 8,
    https://arxiv.org/abs/2007.00224; the released code computes the same. The pairing says whether
    the bracketed positive is there (in the paper it is). Where it is not, as in
    `other_view` and `whole_row`, an anchor whose g is at its floor has a gradient by its positive
    alone. At small temperatures that may be most anchors.

    Args:
        temperature: tau > 0.
        tau_plus: probability that a negative is of the anchor's class, 0 <= tau_plus < 1; 0 gives
            InfoNCE.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("debiased", temperature=0.5, tau_plus=0.1)(both_views(torch.eye(4), torch.eye(4)))
    tensor(0.2115)
    """

    ranges = declare(temperature=TEMPERATURE, tau_plus=CLASS_PRIOR)
    limits = reduces(Limit("infonce", {"tau_plus": 0}))

    temperature: float = 0.5
    tau_plus: float = 0.1

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (neg,) = scores.pos / self.temperature, log_sums
        log_g = log_debias(
            neg - scores.count.log(), scores.log_mean_pos(pos), self.tau_plus, self.temperature
        )
        return -scores.mean_pos(scores.log_share(pos, log_g + scores.count.log()))


def log_debias(log_neg: Tensor, log_pos: Tensor, tau_plus: float, temperature: float) -> Tensor:
    """Log of the debiased mean g, (a, 1).

    Args:
        log_neg: (a, 1) log of the mean over all candidates for negatives.
        log_pos: (a, 1) log of the mean over the positives.
        tau_plus: probability that a candidate is a positive.
        temperature: tau; no mean is below e^{-1 / tau}.

    >>> log_debias(torch.tensor([[0.0]]), torch.tensor([[-1.0]]), 0.5, 1.0).exp()
    tensor([[1.6321]])
    """
    log_tau_plus = math.log(tau_plus) if tau_plus else -math.inf
    share = log_pos - log_neg + log_tau_plus  # of the positives in the mean
    least = math.log1p(-tau_plus) - 1 / temperature - log_neg
    above = share.exp() < 1 - least.exp()
    # the branch that is not taken gets a harmless argument: its gradient would be nan, which zero
    # does not cancel
    difference = log_neg + torch.log1p(-share.where(above, -1).exp()) - math.log1p(-tau_plus)
    return difference.where(above, -1 / temperature)
