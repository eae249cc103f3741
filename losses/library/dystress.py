"""InfoNCE whose temperature depends on each cosine."""

import torch
from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class Dystress(ExponentialLoss):
    r"""InfoNCE with a dynamically scaled temperature: it is lowest for pairs at right angles.

    .. math:: -\log \frac{e^{s^+/\tau(s^+)}}{[e^{s^+/\tau(s^+)}] + \sum_j e^{s_j/\tau(s_j)}}, \qquad
       \tau(s) = \tau_{min} + \frac{\tau_{max} - \tau_{min}}{2} \left(1 + \cos \pi (1 + s)\right)

    Manna et al., "Dynamically Scaled Temperature in Self-Supervised Contrastive Learning"
    (DySTreSS), 2023, https://arxiv.org/abs/2308.01140. Very similar negatives, which may be false
    ones, and very unlike ones meet a temperature near tau_max. As in the released code, no gradient
    flows through tau(s). The pairing says whether the bracketed positive is there. Several
    positives are averaged, as in `infonce`.

    Args:
        temperature: tau_min > 0.
        spread: tau_max - tau_min >= 0; without a spread it is `infonce`.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("dystress", temperature=0.5, spread=0.5)(both_views(torch.eye(4), torch.eye(4)))
    tensor(1.1654)
    """

    ranges = declare(
        temperature=TEMPERATURE, spread=Number(low=0, closed="low", tune=(0.02, 0.5), log=True)
    )
    limits = reduces(Limit("infonce", {"spread": 0}))

    temperature: float = 0.1
    spread: float = 0.1

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (self.scaled(s),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        (neg,) = log_sums
        return -scores.mean_pos(scores.log_share(self.scaled(scores.pos), neg))

    def scaled(self, s: Tensor) -> Tensor:
        """Return cosines over their own temperatures."""
        share = (1 - torch.cos(torch.pi * s.detach())) / 2
        return s / (self.temperature + self.spread * share)
