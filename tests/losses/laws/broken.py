"""Losses with one mistake each: every check of the battery has one that it must find."""

from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.losses import Contrast, ScoreLoss, Scores, UserError
from contrastbench.losses.base import in_range
from contrastbench.losses.library.infonce import InfoNCE
from contrastbench.losses.limits import Limit, reduces


class Runs(ScoreLoss):
    """Takes the mean over the holes, too."""

    def terms(self, scores: Scores) -> Tensor:
        return scores.neg.mean(dim=1) - scores.mean_pos(scores.pos)


class InPlace(ScoreLoss):
    """Divide the scores in place."""

    def terms(self, scores: Scores) -> Tensor:
        neg = scores.neg.div_(0.5)
        return -scores.mean_pos(scores.log_share(scores.pos / 0.5, neg))


class Terms(ScoreLoss):
    """Takes a mean where there are terms."""

    def terms(self, scores: Scores) -> Tensor:
        return -scores.mean_pos(scores.log_share(scores.pos, scores.neg)).mean()


class Device(ScoreLoss):
    """Makes a margin on the CPU."""

    def terms(self, scores: Scores) -> Tensor:
        margin = torch.full((len(scores.pos), 1), 0.1)
        return -scores.mean_pos(scores.log_share(scores.pos - margin, scores.neg))


class Detached(ScoreLoss):
    """Learns from negatives alone."""

    def terms(self, scores: Scores) -> Tensor:
        return -scores.mean_pos(scores.log_share(scores.pos.detach(), scores.neg))


class Sign(ScoreLoss):
    """Return the share itself, not minus its logarithm."""

    def terms(self, scores: Scores) -> Tensor:
        return scores.mean_pos(scores.log_share(scores.pos, scores.neg))


class Positives(ScoreLoss):
    """Does not look at positives."""

    def terms(self, scores: Scores) -> Tensor:
        return scores.log_mean_neg(scores.neg).squeeze(1)


class Negatives(ScoreLoss):
    """Does not look at negatives."""

    def terms(self, scores: Scores) -> Tensor:
        return -scores.mean_pos(scores.pos)


class Holes(ScoreLoss):
    """Divides by the number of keys."""

    def terms(self, scores: Scores) -> Tensor:
        total = scores.neg.masked_fill(scores.hole, 0).sum(dim=1)
        return total / scores.neg.shape[1] - scores.mean_pos(scores.pos)


class RepeatedPositives(ScoreLoss):
    """Sums up over positives."""

    def terms(self, scores: Scores) -> Tensor:
        return -scores.pos.masked_fill(scores.padding, 0).sum(dim=1)


class RepeatedAnchors(InfoNCE):
    """Sums up over anchors."""

    def combine(self, terms: Tensor) -> Tensor:
        return terms.sum()


class Randomness(InfoNCE):
    """Adds noise, in an evaluation too."""

    def combine(self, terms: Tensor) -> Tensor:
        return (terms + torch.rand_like(terms)).mean()


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


class Permutation(InfoNCE):
    """Weighs anchors by their place."""

    def combine(self, terms: Tensor) -> Tensor:
        return (terms * torch.linspace(0, 1, len(terms), dtype=terms.dtype)).mean()


class Rotation(InfoNCE):
    """Looks at one coordinate."""

    def forward(self, contrast: Contrast) -> Tensor:
        return super().forward(contrast) + contrast.anchor[:, 0].square().mean()


class Gradient(InfoNCE):
    """A straight-through trick without saying so."""

    def combine(self, terms: Tensor) -> Tensor:
        with torch.no_grad():
            factor = terms.mean().exp()
        return factor * terms.mean()


class Once(torch.autograd.Function):
    """A square whose gradient forgets that it depends on its argument."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient: Tensor = gradients[0] * 2 * ctx.saved_tensors[0].detach()
        return gradient


class SecondGradient(InfoNCE):
    """Right once, wrong twice."""

    def combine(self, terms: Tensor) -> Tensor:
        value: Tensor = Once.apply(terms.mean())
        return value


class Float32(ScoreLoss):
    """A loss that subtracts large numbers."""

    def terms(self, scores: Scores) -> Tensor:
        return (scores.neg.masked_fill(scores.hole, 0).sum(dim=1) + 1e4) - 1e4


class HalfPrecision(InfoNCE):
    """Recomputes its scores outside the care that the base class takes."""

    def forward(self, contrast: Contrast) -> Tensor:
        return super().forward(contrast) + (contrast.anchor @ contrast.keys.T).square().mean()


class LowTemperature(ScoreLoss):
    """Exponentiates before it takes the logarithm."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores) -> Tensor:
        pos, neg = (scores.pos / self.temperature).exp(), (scores.neg / self.temperature).exp()
        return -scores.mean_pos((pos / (pos + neg.sum(dim=1, keepdim=True))).log())


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


class Padding(ScoreLoss):
    """Takes the plain mean over the columns of positives."""

    def terms(self, scores: Scores) -> Tensor:
        return -scores.pos.mean(dim=1)


class Tiles(InfoNCE):
    """Subtracts the block's mean."""

    def terms(self, scores: Scores) -> Tensor:
        terms = super().terms(scores)
        return (terms - terms.mean()).square()


class Parameters(InfoNCE):
    """A loss that takes any temperature."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature


class Learning(InfoNCE):
    """Takes its learned factor for a number."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.factor = nn.Parameter(torch.ones(()))

    def combine(self, terms: Tensor) -> Tensor:
        return terms.mean() * self.factor.item()


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
