"""Losses whose negatives enter through sums of exponentials: everything a tile of scores must leave behind."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores


class ExponentialLoss(ScoreLoss):
    """A loss of the positives and of log-sums over the negatives, `log_sums[k] = log sum_j exp(log_summands(s_j)[k])`.

    The sums can be taken over tiles in any order, without holding a row of scores.
    """

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
