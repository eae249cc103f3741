"""The supervised contrastive loss."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Choice, declare

SUMS = {"repeated positives": "all positives stand in every denominator"}
PUSHES = {"closer positives": "L_out pushes the closest of several positives away"}


class SupCon(ExponentialLoss):
    r"""Supervised contrastive: all positives of an anchor stand in one denominator.

    .. math:: L_{out} = -\frac1P \sum_{p=1}^P \log \frac{e^{s^+_p/\tau}}{Z}, \qquad
       L_{in} = -\log \frac1P \sum_{p=1}^P \frac{e^{s^+_p/\tau}}{Z}, \qquad
       Z = \left[\sum_{p=1}^P e^{s^+_p/\tau}\right] + \sum_j e^{s_j/\tau}

    Khosla et al., "Supervised Contrastive Learning", NeurIPS 2020, equations 2 and 3,
    https://arxiv.org/abs/2004.11362. Its labels are the pairing `same_class`. The pairing says
    whether the bracketed positives are there (in the paper they are).

    In L_out a positive that is closer than the others is pushed away. `infonce` gives each positive
    a denominator without the others, which pushes none away: that is SINCERE (Feeney and Hughes
    2023, https://arxiv.org/abs/2309.14277). With one positive all three are one loss. The released
    code multiplies by temperature / base_temperature, which is 1 for equal ones.

    Args:
        temperature: tau > 0.
        form: "out" averages the positives' logarithms, "in" takes the logarithm of their mean.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, same_class
    >>> contrast = same_class(torch.eye(3), torch.eye(3), torch.tensor([0, 0, 1]))
    >>> [get_loss("supcon", form=form)(contrast) for form in ("out", "in")]
    [tensor(1.3215), tensor(1.0054)]
    """

    ranges = declare(temperature=TEMPERATURE, form=Choice("out", "in"))
    limits = reduces(Limit("infonce", one_positive=True))

    temperature: float = 0.5
    form: str = "out"

    def _set_up(self) -> None:
        self.declined_laws = SUMS | PUSHES if self.form == "out" else SUMS

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (neg,) = scores.pos / self.temperature, log_sums
        total = scores.log_sum_pos(pos)
        log_mean = scores.mean_pos(pos) if self.form == "out" else scores.log_mean_pos(pos)[:, 0]
        return total[:, 0] - log_mean - scores.log_share(total, neg)[:, 0]
