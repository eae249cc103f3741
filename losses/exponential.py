"""Losses of sums over the negatives, which tiles can add up in any order; most of exponentials."""

import math
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import softplus

from contrastbench.distributed import world
from contrastbench.losses import blocks
from contrastbench.losses.base import ScoreLoss, Scores, of_positives
from contrastbench.losses.blocks import Summands, Sums, tiled_sums
from contrastbench.losses.contrast import Contrast


class SummedLoss(ScoreLoss):
    """A loss of the positives and of sums over the negatives.

    The sums, `sums[k] = sum_j summands(s_j)[k]`, can be taken over tiles in any order. Where all
    anchors are keys, as in `both_views`, symmetric tiles compute half of the scores and keep none.
    Parameters of the loss's own may stand in `summands` and `row_terms`.
    """

    tile: int | None = None  # rows and columns held at once; None: as many as suit the device

    def summands(self, s: Tensor) -> tuple[Tensor, ...]:
        """What each negative of cosine s adds to each sum; elementwise, and finite."""
        raise NotImplementedError

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        """(a,) the formula, from the positives and the (a, 1) sums; not from scores.neg."""
        raise NotImplementedError

    def terms(self, scores: Scores) -> Tensor:
        found = self.summands(scores.filled(scores.neg, 0))
        kept = (scores.filled(x, 0) for x in found)
        return self.row_terms(scores, *(x.sum(dim=1, keepdim=True) for x in kept))

    def forward(self, contrast: Contrast) -> Tensor:
        z = contrast.anchor
        with torch.autocast(z.device.type, enabled=False):
            sums = self.tile_sums(z, contrast.anchor_id) if self.tiled(contrast) else None
            if sums is None:
                return super().forward(contrast)
            return self.conclude(contrast, self.row_terms(of_positives(contrast), *sums))

    def tiled(self, contrast: Contrast) -> bool:
        """Return whether tiles pay: many anchors that are the keys, without scores of positives.

        Of several processes each takes rows, which are no more scores than one would compute.
        """
        if world() > 1:
            return False
        symmetric = contrast.anchor is contrast.keys and contrast.anchor_id is contrast.key_id
        many = len(contrast.anchor) > (self.tile or blocks.CPU_TILE)
        return symmetric and many and contrast.positive is not None

    def tile_sums(self, z: Tensor, ids: Tensor) -> tuple[Tensor, ...] | None:
        """Return what `row_terms` takes, added up over tiles; None: they cannot hold it."""
        return self.over_tiles(z, ids, (self.summands, self.summands))

    def over_tiles(self, z: Tensor, ids: Tensor, summands: Sums) -> tuple[Tensor, ...]:
        own = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return tiled_sums(z, ids, summands, self.tile or blocks.tile(z.device), own)


class SigmoidLoss(SummedLoss):
    """A loss that tells positive from negative pairs one by one: a negative adds log(1 + e^x)."""

    def logits(self, s: Tensor) -> Tensor:
        """The x of a pair of cosine s."""
        raise NotImplementedError

    def summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (softplus(self.logits(s)),)

    def tile_sums(self, z: Tensor, ids: Tensor) -> tuple[Tensor, ...]:
        def slopes(s: Tensor) -> tuple[Tensor, ...]:
            return (cast(Tensor, blocks.SoftplusSlope.apply(self.logits(s))),)

        return self.over_tiles(z, ids, (self.summands, slopes))


class ExponentialLoss(SummedLoss):
    """A loss of the positives and of log-sums of exponentials over the negatives.

    `log_sums[k] = log sum_j exp(log_summands(s_j)[k])`. Cosines are bounded, so that in tiles
    constants replace the running maxima of a logsumexp.
    """

    temperature: float

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        """Log of what each negative of cosine s adds to each sum; here to one, of e^(s / tau)."""
        return (s / self.temperature,)

    def terms(self, scores: Scores) -> Tensor:
        summands = self.log_summands(scores.filled(scores.neg, 0))
        holed = [scores.filled(x, -math.inf) for x in summands]
        return self.row_terms(scores, *(torch.logsumexp(x, dim=1, keepdim=True) for x in holed))

    def tile_sums(self, z: Tensor, ids: Tensor) -> tuple[Tensor, ...] | None:
        shifts = self.shifts(z.dtype)
        if shifts is None:
            return None

        def summands(s: Tensor) -> tuple[Tensor, ...]:
            return tuple(
                (log - shift).exp() for log, shift in zip(self.log_summands(s), shifts, strict=True)
            )

        sums = self.over_tiles(z, ids, (summands, summands))
        return tuple(x.log() + shift for x, shift in zip(sums, shifts, strict=True))

    def shifts(self, dtype: torch.dtype) -> list[float] | None:
        """What tiles take out of each summand; None if they cannot, or if asking waits."""
        own = (*self.parameters(), *self.buffers())
        on_host = all(tensor.device.type == "cpu" for tensor in own)
        return tile_shifts(self.log_summands, dtype) if on_host else None


def tile_shifts(log_summands: Summands, dtype: torch.dtype) -> list[float] | None:
    """What to take out of each summand so that all of its exponentials are numbers of that type.

    It is the largest value over all cosines, or the middle where the smallest is too small beside
    that; None if it is too small even so. Computed on the CPU.
    """
    # 129 cosines, -1, 0 and 1 among them, are close enough to the extremes of a smooth summand
    logs = log_summands(torch.linspace(-1, 1, 129, dtype=dtype))
    # e^28 is left for the number of keys and for the scale of the gradient
    room = math.log(torch.finfo(dtype).max) - 28
    values = torch.stack([x.detach().expand(129) for x in logs])
    highest, lowest = values.amax(dim=1), values.amin(dim=1)
    if not bool((highest - lowest < 2 * room).all()):
        return None
    return highest.where(highest - lowest < room, (highest + lowest) / 2).tolist()


def log_mean(log_x: Tensor) -> Tensor:
    """Log of the mean over the anchors, (A, k) -> (k,), of the logs of each anchor's own means.

    >>> log_mean(torch.tensor([[1.0], [3.0]]).log()).exp()
    tensor([2.])
    """
    return torch.logsumexp(log_x, dim=0) - math.log(len(log_x))


def log_mix(alpha: float, log_p: Tensor, log_q: Tensor) -> Tensor:
    """Log of the skewed mean alpha p + (1 - alpha) q.

    >>> log_mix(0.5, torch.tensor(2.0).log(), torch.tensor(4.0).log()).exp()
    tensor(3.)
    """
    if alpha in (0, 1):  # there a logarithm is infinite
        return log_p if alpha else log_q
    return torch.logaddexp(log_p + math.log(alpha), log_q + math.log1p(-alpha))
