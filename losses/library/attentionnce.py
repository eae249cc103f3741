"""The AttentionNCE contrastive loss."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, Towards, inf, reduces
from contrastbench.losses.ranges import TEMPERATURE, VARIANT, Number, declare


class AttentionNCE(ScoreLoss):
    r"""InfoNCE on prototypes: attention mixes an anchor's positives and stretches its negatives.

    .. math:: -\log \frac{e^{q h^+/\tau}}{[e^{q h^+/\tau}] + \sum_j e^{\beta_j s_j/\tau}}, \qquad
       q h^+ = \sum_m \alpha_m s^+_m, \qquad \alpha = \mathrm{softmax}(s^+ / d_{pos}), \qquad
       \beta = N\, \mathrm{softmax}(s / d_{neg})

    Liu et al., "AttentionNCE: Contrastive Learning with Instance Attention", 2024, equations 7 to
    10 and 14, https://openreview.net/forum?id=FfHGAAoSVJ. The pairing says whether the bracketed
    positive is there (in the paper it is). Both attentions are detached in both variants, as in the
    released code, so "paper" is the paper's value alone. The printed equations stop no gradient.
    Theirs differs from this one, on random vectors by 26 to 47 % of its length at the defaults and
    by 105 to 162 % at d_neg = 0.3.

    Args:
        temperature: tau > 0.
        d_pos: > 0; small values look at the most similar positive alone.
        d_neg: > 0; small values look at the hardest negative alone, large ones give every negative
            weight 1.
        variant: the released code ("official_code") adds 1e-6 to the negatives' softmax; the paper
            ("paper") does not.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> z1, z2, z3, z4 = torch.eye(4), torch.eye(4), torch.eye(4) + 0.1, torch.eye(4) + 0.2
    >>> contrast = both_views(z1, z2, positives=[z3, z4])
    >>> get_loss("attentionnce", temperature=0.5, d_pos=1.0, d_neg=1.0)(contrast)
    tensor(0.6176)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        d_pos=Number(low=0, tune=(0.1, 10), log=True),
        d_neg=Number(low=0, tune=(0.1, 10), log=True),
        variant=VARIANT,
    )
    limits = reduces(
        Limit("infonce", {"d_neg": Towards(inf, near=1e9), "variant": "paper"}, one_positive=True)
    )

    temperature: float = 0.5
    d_pos: float = 1.0
    d_neg: float = 1.0
    variant: str = "official_code"

    def terms(self, scores: Scores) -> Tensor:
        alpha = scores.weights_pos(scores.pos / self.d_pos).detach()
        beta = torch.softmax(scores.neg / self.d_neg, dim=1).detach()
        beta = scores.count * (beta + (1e-6 if self.variant == "official_code" else 0))
        pos = scores.mean_pos(alpha * scores.pos).unsqueeze(1) / self.temperature
        neg = beta * scores.filled(scores.neg, 0) / self.temperature
        return -scores.log_share(pos, scores.filled(neg, -math.inf)).squeeze(1)
