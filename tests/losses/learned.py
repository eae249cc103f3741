"""Losses with parameters of their own, as a user would write them."""

from types import MappingProxyType

import torch
from torch import Tensor, nn

from contrastbench.losses import Contrast, Loss, ScoreLoss, Scores, queued
from contrastbench.losses.base import in_range
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.library.infonce import InfoNCE


class Temperature(ScoreLoss):
    """InfoNCE that learns its temperature."""

    def __init__(self, temperature: float = 0.5, lr: float = 0.01) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(in_range("temperature", temperature, low=0)))
        self.lr = in_range("lr", lr, low=0)

    def terms(self, scores: Scores) -> Tensor:
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg))


class Counting(Temperature):
    """InfoNCE that learns its temperature, and weighs more with each step."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.register_buffer("steps", torch.zeros(()))

    def terms(self, scores: Scores) -> Tensor:
        if self.training:
            self.steps += 1
        return super().terms(scores) * (1 + 0.1 * self.steps)


class Warmed(Temperature):
    """InfoNCE whose learned temperature weighs less with the share of the steps that are done."""

    share = 0.0

    def advance(self, share: float) -> None:
        self.share = share

    def terms(self, scores: Scores) -> Tensor:
        return super().terms(scores) * (1 - 0.5 * self.share)


class Scale(ExponentialLoss):
    """InfoNCE that learns the logarithm of its inverse temperature, by tiles; CLIP's choice."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)
        self.log_scale = nn.Parameter(-torch.tensor(self.temperature).log())

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (s * self.log_scale.exp(),)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        return -scores.mean_pos(scores.log_share(scores.pos * self.log_scale.exp(), log_sums[0]))


class Proxy(Loss):
    """Cross-entropy of anchors with a learned proxy of each class."""

    needs_classes = True
    declined_laws = MappingProxyType({"half precision": "it leaves its scores to autocast"})

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)
        self.proxies = nn.Parameter(torch.empty(0, 0))

    def prepare(self, classes: int, dim: int) -> None:
        self.proxies = nn.Parameter(torch.randn(classes, dim))

    def forward(self, contrast: Contrast) -> Tensor:
        scores = contrast.anchor @ nn.functional.normalize(self.proxies, dim=1).T
        return nn.functional.cross_entropy(scores / self.temperature, contrast.anchor_id)


class Bank(InfoNCE):
    """InfoNCE with a queue that begins empty, so its shape is that of its checkpoint."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.register_buffer("queue", torch.empty(0))

    def forward(self, contrast: Contrast) -> Tensor:
        value = super().forward(queued(contrast, self.queue))
        rows = self.queue.reshape(-1, contrast.keys.shape[1])
        self.queue = torch.cat([contrast.keys.detach(), rows])[:40]
        return value
