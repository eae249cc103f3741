"""Random embeddings and every way to pair them: what the battery feeds to a loss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from contrastbench.losses import both_views, other_view, own_view, query_key, same_class, whole_row
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast

PairingFunction = Callable[[Sequence[Tensor]], Contrast]
MAX_SAMPLES = 64  # the largest batch has as many

SCORED: dict[str, PairingFunction] = {
    "both_views": lambda views: both_views(views[0], views[1]),
    "both_views with positives": lambda views: both_views(views[0], views[1], positives=views[2:]),
    "other_view": lambda views: other_view(views[0], views[1]),
    "other_view, sum": lambda views: other_view(views[0], views[1], mean_over_negatives=False),
    "whole_row": lambda views: whole_row(views[0], views[1]),
    "query_key": lambda views: query_key(views[:2], views[2]),
    "same_class": lambda views: same_class(views[0], views[1], classes(len(views[0]))),
    "own_view": lambda views: own_view(views[0], views[1]),
}


def with_whole_views(pairing: PairingFunction) -> PairingFunction:
    """Let a pairing carry two whole views and an index always, so all losses meet one batch."""
    return lambda views: numbered_samples(replace(pairing(views), views=(views[0], views[1])))


def numbered_samples(contrast: Contrast) -> Contrast:
    return replace(contrast, index=contrast.anchor_id)


LAW_PAIRINGS = {name: with_whole_views(pairing) for name, pairing in SCORED.items()}


def with_sample_numbers(loss: Loss) -> Loss:
    """Return a loss that keeps numbers of samples as if it had met each once, all of them alike.

    So its laws are those of a memory that is not empty, and the order of samples does not matter.
    """
    if loss.needs_samples:
        training = loss.training
        loss.prepare_samples(MAX_SAMPLES)
        loss.train()(LAW_PAIRINGS["both_views"](equicorrelated_views(0.3, MAX_SAMPLES)))
        loss.train(training)
    return loss


def random_views(
    seed: int, size: int, dim: int = 8, dtype: torch.dtype = torch.float64, grad: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (size, dim)
    samples = torch.randn(shape, dtype=torch.float64, generator=generator)

    def view() -> Tensor:
        noise = torch.randn(shape, dtype=torch.float64, generator=generator)
        return (samples + 0.5 * noise).to(dtype).requires_grad_(grad)

    return view(), view(), view()


def apart_by(angle: float, size: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Three views of as many samples, positives so far apart in radians, negatives orthogonal."""
    axes = torch.eye(3 * size, dtype=torch.float64)
    own, others = axes[:size], (axes[size : 2 * size], axes[2 * size :])
    near, far = (math.cos(angle) * own + math.sin(angle) * other for other in others)
    return own, near, far


def equicorrelated_views(cosine: float, size: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Return three equal views of as many samples, any two of which have this cosine."""
    axes = torch.eye(size + 1, dtype=torch.float64)
    z = math.sqrt(cosine) * axes[:1] + math.sqrt(1 - cosine) * axes[1:]
    return z, z, z


def classes(size: int) -> Tensor:
    """Labels of two or more classes, most of them with two samples."""
    return torch.arange(size) % max(2, size // 2) if size > 1 else torch.zeros(1, dtype=torch.long)


def some_pairing(seed: int, without: str = "") -> PairingFunction:
    names = [name for name in LAW_PAIRINGS if name != without]
    return LAW_PAIRINGS[names[seed % len(names)]]
