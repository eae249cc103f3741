"""Losses whose negatives enter through sums of exponentials, which tiles of scores can add up."""

import math

import torch
from torch import Tensor

from contrastbench.distributed import world
from contrastbench.losses import blocks
from contrastbench.losses.base import ScoreLoss, Scores, with_positives
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.tiles import largest_summands, log_sums


class ExponentialLoss(ScoreLoss):
    """A loss of the positives and of log-sums over the negatives.

    The sums, `log_sums[k] = log sum_j exp(log_summands(s_j)[k])`, can be taken over tiles in any
    order. Where all anchors are keys, as in `both_views`, symmetric tiles compute half of the
    scores and keep none. Parameters of the loss's own may stand in `log_summands` and `row_terms`.
    """

    tile: int | None = None  # rows and columns held at once; None: as many as suit the device

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
        peaks = self.peaks(contrast.anchor.dtype) if self.tiled(contrast) else None
        if peaks is None:
            return super().forward(contrast)
        z, tile = contrast.anchor, self.tile or blocks.tile(contrast.anchor.device)
        with torch.autocast(z.device.type, enabled=False):
            own = [parameter for parameter in self.parameters() if parameter.requires_grad]
            sums = log_sums(z, contrast.anchor_id, self.log_summands, peaks, tile, own)
            scores = with_positives(contrast, slice(None), z.new_empty(len(z), 0))
            return self.conclude(contrast, self.row_terms(scores, *sums))

    def tiled(self, contrast: Contrast) -> bool:
        """Return whether tiles pay: many anchors that are the keys, without scores of positives.

        Of several processes each takes rows, which are no more scores than one would compute.
        """
        if world() > 1:
            return False
        symmetric = contrast.anchor is contrast.keys and contrast.anchor_id is contrast.key_id
        many = len(contrast.anchor) > (self.tile or blocks.CPU_TILE)
        return symmetric and many and contrast.positive is not None

    def peaks(self, dtype: torch.dtype) -> list[float] | None:
        """The largest of each summand; None if tiles cannot take them out, or if asking waits."""
        own = (*self.parameters(), *self.buffers())
        on_host = all(tensor.device.type == "cpu" for tensor in own)
        return largest_summands(self.log_summands, dtype) if on_host else None
