"""Losses whose negatives enter through sums of exponentials, which tiles of scores can add up."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores, with_positives
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.tiles import largest, log_sums


class ExponentialLoss(ScoreLoss):
    """A loss of the positives and of log-sums over the negatives.

    The sums, `log_sums[k] = log sum_j exp(log_summands(s_j)[k])`, can be taken over tiles in any
    order. Where all anchors are keys, as in `both_views`, symmetric tiles compute half of the
    scores and keep none. Parameters of the loss's own may stand in `log_summands` and `row_terms`.
    """

    tile = 256  # rows and columns of scores held at once; fewer anchors are one block

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        """Log of what each negative of cosine s adds to each sum; elementwise."""
        raise NotImplementedError

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        """(a,) the formula, from the positives and the (a, 1) log-sums; not from scores.neg."""
        raise NotImplementedError

    def terms(self, scores: Scores) -> Tensor:
        summands = self.log_summands(scores.neg.masked_fill(scores.hole, 0))
        holed = [x.masked_fill(scores.hole, -math.inf) for x in summands]
        return self.row_terms(scores, *(torch.logsumexp(x, dim=1, keepdim=True) for x in holed))

    def forward(self, contrast: Contrast) -> Tensor:
        peaks = largest(self.log_summands, contrast.anchor) if self.tiled(contrast) else None
        if peaks is None:
            return super().forward(contrast)
        ids, no_scores = contrast.anchor_id, contrast.anchor.new_empty(len(contrast.anchor), 0)
        with torch.autocast(contrast.anchor.device.type, enabled=False):
            own = [parameter for parameter in self.parameters() if parameter.requires_grad]
            sums = log_sums(contrast.anchor, ids, self.log_summands, peaks, self.tile, own)
            _, sample, size = torch.unique(ids, return_inverse=True, return_counts=True)
            count = (len(sample) - size[sample]).unsqueeze(1)
            scores = with_positives(contrast, slice(None), no_scores, count)
            return self.combine(self.row_terms(scores, *sums))

    def tiled(self, contrast: Contrast) -> bool:
        """Whether tiles pay: anchors are the keys, many, and no positive needs the rows' scores."""
        symmetric = contrast.anchor is contrast.keys and contrast.anchor_id is contrast.key_id
        return symmetric and len(contrast.anchor) > self.tile and contrast.positive is not None
