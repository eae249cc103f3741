"""The loss of CLIP."""

import math
from dataclasses import replace
from types import MappingProxyType

import torch
from torch import Tensor, nn

from contrastbench.losses.base import Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.ranges import Number, declare

MAX_LOG_SCALE = math.log(100)  # of the logarithm of the scale, as in the paper


class CLIP(ExponentialLoss):
    r"""InfoNCE in both directions, with a learned temperature.

    .. math:: \frac12 \left(-\log \frac{e^{t s^+}}{[e^{t s^+}] + \sum_j e^{t s_j}}
       - \log \frac{e^{t s^+}}{[e^{t s^+}] + \sum_i e^{t s'_i}}\right), \qquad t = e^{t'}

    Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", ICML
    2021, Figure 3, https://arxiv.org/abs/2103.00020. The s_j are cosines of the anchor with keys,
    the s'_i those of its positive with anchors of other samples: rows and columns of one matrix. In
    `whole_row` it is the paper's loss. In `both_views` and `same_class` the two directions are
    equal, and it begins as `infonce`. Several positives are averaged.

    The logarithm t' is a parameter of the loss, `log_scale`, and learns at the encoder's rate
    without decay. Each training step first takes it back to log 100 if it is larger.

    Args:
        temperature: 1 / t at the start, >= 0.01.

    Raises:
        ValueError: temperature out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, whole_row
    >>> get_loss("clip", temperature=0.5)(whole_row(torch.eye(4), torch.eye(4)))
    tensor(0.3408, grad_fn=<DivBackward0>)
    """

    declined_laws = MappingProxyType(
        {"repeated anchors": "its second direction compares a positive with all anchors"}
    )
    ranges = declare(temperature=Number(low=0.01, closed="low", tune=(0.05, 1), log=True))

    temperature: float = 0.07

    def _set_up(self) -> None:
        self.log_scale = nn.Parameter(-torch.tensor(self.temperature).log())

    def keep_in_range(self) -> None:
        self.log_scale.data.clamp_(max=MAX_LOG_SCALE)

    def forward(self, contrast: Contrast) -> Tensor:
        rows = super().forward(contrast)
        if contrast.mutual:
            return rows  # of `both_views` and `same_class`, whose columns are the same terms
        with torch.autocast(contrast.anchor.device.type, enabled=False):
            columns = self.of_anchors(transposed(contrast), self.terms).view(
                len(contrast.anchor), -1
            )
            pairs = Scores(columns, columns, columns, padded=contrast.padding)
            return (rows + self.combine(pairs.mean_pos(columns))) / 2

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (s * self.log_scale.exp(),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        return -scores.mean_pos(scores.log_share(scores.pos * self.log_scale.exp(), log_sums[0]))


def transposed(contrast: Contrast) -> Contrast:
    """Return the positives as anchors, each with its anchor as positive and all anchors as keys.

    >>> from contrastbench.losses import whole_row
    >>> transposed(whole_row(torch.eye(2), -torch.eye(2))).anchor
    tensor([[-1., -0.],
            [-0., -1.]])
    """
    positives, mates = contrast.positives(), contrast.positive_key
    each = positives.shape[1]
    own = contrast.anchor_id.repeat_interleave(each)
    return replace(
        contrast,
        anchor=positives.flatten(0, 1),
        positive=contrast.anchor.repeat_interleave(each, 0).unsqueeze(1),
        keys=contrast.anchor,
        anchor_id=own if mates is None else contrast.key_id[mates.flatten()],
        key_id=contrast.anchor_id,
        padding=None,
        positive_key=None,
        negatives=None,
        index=None,
    )
