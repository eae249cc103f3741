"""Losses with one mistake each, which checks must find; those that users make are in `wrong`."""

from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.losses import Contrast, ScoreLoss, Scores, UserError
from contrastbench.losses.library.infonce import InfoNCE
from contrastbench.losses.limits import Limit, reduces


class Memory(InfoNCE):
    """Weighs by how often it was called."""

    calls = 0

    def combine(self, terms: Tensor) -> Tensor:
        self.calls += 1
        return terms.mean() * self.calls


class Noise(InfoNCE):
    """Adds noise where it trains."""

    def combine(self, terms: Tensor) -> Tensor:
        return (terms + torch.rand_like(terms) * self.training).mean()


class Vector(InfoNCE):
    """A loss that forgets to reduce."""

    def combine(self, terms: Tensor) -> Tensor:
        return terms


class Scalar(InfoNCE):
    """Gives its result in float32, whatever its scores are."""

    def combine(self, terms: Tensor) -> Tensor:
        return terms.mean().float()


class BatchSize(InfoNCE):
    """Overflows in batches of more than forty anchors."""

    def combine(self, terms: Tensor) -> Tensor:
        factor = torch.tensor(2.0, dtype=torch.float64) ** (25 * len(terms))
        return terms.mean() * factor / factor


class Rotation(InfoNCE):
    """Looks at one coordinate."""

    def forward(self, contrast: Contrast) -> Tensor:
        return super().forward(contrast) + contrast.anchor[:, 0].square().mean()


class Float32(ScoreLoss):
    """A loss that subtracts large numbers."""

    def terms(self, scores: Scores) -> Tensor:
        return (scores.neg.masked_fill(scores.hole, 0).sum(dim=1) + 1e4) - 1e4


class HalfPrecision(InfoNCE):
    """Recomputes its scores outside the care that the base class takes."""

    def forward(self, contrast: Contrast) -> Tensor:
        return super().forward(contrast) + (contrast.anchor @ contrast.keys.T).square().mean()


class ZeroRows(ScoreLoss):
    """Divides by a length that may be zero."""

    def terms(self, scores: Scores) -> Tensor:
        return scores.mean_pos(1 / scores.pos)


class NoNegatives(InfoNCE):
    """Calls it zero when there is nothing to contrast with."""

    def forward(self, contrast: Contrast) -> Tensor:
        try:
            return super().forward(contrast)
        except UserError:
            return contrast.anchor.sum() * 0


class Buffers(InfoNCE):
    """Counts its calls in `terms`, which run again in the backward pass."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.register_buffer("count", torch.zeros(()))

    def terms(self, scores: Scores) -> Tensor:
        if self.training:
            self.count += 1
        return super().terms(scores)


class State(InfoNCE):
    """Forgets what it learned when a checkpoint is read."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.factor = nn.Parameter(torch.ones(()))

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        return super().load_state_dict({"factor": torch.ones(())}, strict, assign)

    def combine(self, terms: Tensor) -> Tensor:
        return terms.mean() * self.factor


class CloserPositives(ScoreLoss):
    """A focal loss, which takes a share for a probability; on graphs it exceeds 1."""

    def terms(self, scores: Scores) -> Tensor:
        share = scores.log_share(scores.pos / 0.5, scores.neg / 0.5)
        return -scores.mean_pos((1 - share.exp()) * share)


class Limits(InfoNCE):
    """Declares another loss than the one that it is."""

    limits = reduces(Limit("decoupled"))


class HolesTimesZero(InfoNCE):
    """Learns a share of the negatives, and multiplies holes by it: -inf where nothing learns."""

    def __init__(self) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.zeros(()))

    def terms(self, scores: Scores) -> Tensor:
        return super().terms(scores) + (scores.neg * self.share).sum(dim=1, keepdim=True)
