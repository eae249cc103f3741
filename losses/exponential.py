"""Losses whose negatives enter through sums of exponentials: everything a tile of scores must leave behind."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores, with_positives
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.tiles import largest, log_sums


class ExponentialLoss(ScoreLoss):
    """A loss of the positives and of log-sums over the negatives, `log_sums[k] = log sum_j exp(log_summands(s_j)[k])`.

    The sums can be taken over tiles in any order. Where all anchors are keys, as in `both_views`,
    symmetric tiles compute half of the scores and keep none.
    """

    tile = 256  # rows and columns of scores held at once; fewer anchors are one block

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        """Log of what each negative of cosine s adds to each sum; elementwise."""
        raise NotImplementedError

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        """(a,) the formula, from the positives and the (a, 1) log-sums; it must not look at scores.neg."""
        raise NotImplementedError

    def terms(self, scores: Scores) -> Tensor:
        summands = self.log_summands(scores.neg.masked_fill(scores.hole, 0))
        holed = [x.masked_fill(scores.hole, -math.inf) for x in summands]
        return self.row_terms(scores, *(torch.logsumexp(x, dim=1, keepdim=True) for x in holed))

    def forward(self, contrast: Contrast) -> Tensor:
        symmetric = contrast.anchor is contrast.keys and contrast.anchor_id is contrast.key_id
        peaks = (
            largest(self.log_summands, contrast.anchor)
            if symmetric and len(contrast.anchor) > self.tile
            else None
        )
        if peaks is None:
            return super().forward(contrast)
        with torch.autocast(contrast.anchor.device.type, enabled=False):
            sums = log_sums(
                contrast.anchor, contrast.anchor_id, self.log_summands, peaks, self.tile
            )
            _, sample, size = torch.unique(
                contrast.anchor_id, return_inverse=True, return_counts=True
            )
            count = (len(sample) - size[sample]).unsqueeze(1)
            no_scores = contrast.anchor.new_empty(len(count), 0)
            return self.combine(
                self.row_terms(with_positives(contrast, slice(None), no_scores, count), *sums)
            )
