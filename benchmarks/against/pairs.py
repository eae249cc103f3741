"""How much each pair of embeddings pulls, read off the gradient of any loss.

A loss of cosines has the gradient W U in the unit rows U of the embeddings. W holds the derivative
by the cosine of each pair. With more dimensions than embeddings the rows of U are linearly
independent, so the gradient determines W but for its diagonal.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastbench.benchmarks.against.batches import Batch

COPY_COSINE = 0.99  # cosine from which a negative is a copy
HARD_QUANTILE = 0.9  # quantile of the cosines from which a negative is hard
MIN_PAIR_SHARE = 1e-9  # share of all pairs below which a kind of pair is not there


@dataclass(frozen=True)
class Pull:
    """The derivative by each pair's cosine, and what of the gradient no pair explains."""

    pairs: Tensor  # (2N, 2N)
    lengths: Tensor  # (2N,) along the embedding itself
    rest: Tensor  # (2N, D) outside of all embeddings


def pull(gradient: Tensor, batch: Batch) -> Pull:
    """Split the gradient of the embeddings by pairs."""
    views = batch.views
    lengths = views.norm(dim=1, keepdim=True)
    unit, scaled = views / lengths, gradient * lengths
    pairs = torch.linalg.lstsq(unit.T, scaled.T).solution.T
    return Pull(pairs, (scaled * unit).sum(dim=1), scaled - pairs @ unit)


def pair_masks(batch: Batch, ids: Tensor) -> dict[str, Tensor]:
    """Return by name which pairs are of that kind, as (2N, 2N) masks."""
    unit = torch.nn.functional.normalize(batch.views)
    cosine, size = unit @ unit.T, len(ids)
    own, both = torch.eye(2 * size, dtype=torch.bool), ids.repeat(2)
    same = both.unsqueeze(1) == both
    negative, view = ~same, torch.arange(2 * size) // size
    copy = negative & (cosine > COPY_COSINE)
    hard = negative & ~copy & (cosine >= cosine[negative & ~copy].quantile(HARD_QUANTILE))
    return {
        "positives": same & ~own,
        "negatives within a view": negative & (view.unsqueeze(1) == view),
        "negatives across views": negative & (view.unsqueeze(1) != view),
        "duplicates": copy,
        "hard negatives": hard,
        "easy negatives": negative & ~copy & ~hard,
    }


def apart_by_kind(one: Tensor, two: Tensor, batch: Batch, ids: Tensor) -> dict[str, float]:
    """Return by kind how far two gradients are apart, relative to the larger one of that kind."""
    a, b = pull(one, batch), pull(two, batch)
    off = ~torch.eye(len(one), dtype=torch.bool)
    everything = max(float(p.pairs[off].abs().sum()) for p in (a, b))
    parts = {name: (a.pairs[mask], b.pairs[mask]) for name, mask in pair_masks(batch, ids).items()}
    parts |= {"lengths": (a.lengths, b.lengths), "other than pairs": (a.rest, b.rest)}
    return {
        name: relative_difference(x, y, MIN_PAIR_SHARE * everything)
        for name, (x, y) in parts.items()
    }


def relative_difference(x: Tensor, y: Tensor, floor: float) -> float:
    """Return how far two are apart by the sum of sizes, 0 where both are below the floor."""
    scale = max(float(x.abs().sum()), float(y.abs().sum()))
    return float((x - y).abs().sum()) / scale if scale > floor else 0.0
