"""Sums of functions of cosines over a symmetric matrix of them, tile by tile.

Where every anchor is a key too (`both_views`), a tile above the diagonal serves its rows and its
columns: half the scores are computed, and none is kept: the backward pass computes them again.

PyTorch's `flex_attention` has such sums with a gradient too, but on CUDA alone ("FlexAttention does
not support backward on CPU"), so that what a test on a CPU proves would not be what a card runs. It
would also compute all scores where half are needed, and a product with values that no loss has.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from contrastbench.losses import blocks

Summands = Callable[[Tensor], tuple[Tensor, ...]]


def tiled_sums(
    z: Tensor, ids: Tensor, summands: Summands, tile: int, parameters: Sequence[Tensor] = ()
) -> tuple[Tensor, ...]:
    """(A, 1) each: sum_j summands(z_i z_j)[k] over the j of other ids.

    Args:
        z: (A, D) unit rows.
        ids: (A,) a row of the same id is left out.
        summands: elementwise; finite for every cosine.
        tile: rows and columns held at once.
        parameters: tensors that summands uses and that get a gradient.
    """
    found = TiledSums.apply(z, ids, (summands, tile), *parameters)
    return cast("tuple[Tensor, ...]", found)


class TiledSums(torch.autograd.Function):
    """The sums and their gradient, which cannot be differentiated again."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, ids: Tensor, options: tuple[Summands, int], *parameters: Tensor
    ) -> tuple[Tensor, ...]:
        summands, tile = options
        sums = list[Tensor]()
        for rows, columns, others in tiles(z, ids, tile):
            values = summands(z[rows] @ z[columns].T)
            sums = sums or [z.new_zeros(len(z)) for _ in values]
            for total, x in zip(sums, values, strict=True):
                kept = masked(x, others)
                total[rows].add_(kept.sum(dim=1))
                if rows != columns:
                    total[columns].add_(kept.sum(dim=0))
        ctx.save_for_backward(z, ids, *parameters)
        ctx.options = options
        return tuple(total.unsqueeze(1) for total in sums)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        summands, tile = ctx.options
        z, ids, *parameters = ctx.saved_tensors
        with torch.autocast(z.device.type, enabled=False):
            total, own = torch.zeros_like(z), [torch.zeros_like(p) for p in parameters]
            for rows, columns, others in tiles(z, ids, tile):
                slope, *own_slopes = tile_slopes(
                    z[rows] @ z[columns].T,
                    summands,
                    [masked(g[rows] + g[columns].T, others) for g in gradients],
                    parameters,
                )
                total[rows].addmm_(slope, z[columns])
                if rows != columns:
                    total[columns].addmm_(slope.T, z[rows])
                # a tile on the diagonal has each pair twice, and its row's and its column's scale
                for sum_, x in zip(own, own_slopes, strict=True):
                    sum_.add_(x, alpha=1 if rows != columns else 0.5)
        return total, None, None, *own


def tile_slopes(
    s: Tensor, summands: Summands, gradients: Sequence[Tensor], parameters: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Gradients by each cosine of a tile, and by the parameters."""
    with torch.enable_grad():
        s = s.detach().requires_grad_()
        values = summands(s)
    moving = [(x, g) for x, g in zip(values, gradients, strict=True) if x.requires_grad]
    outputs, upstream = zip(*moving, strict=True)
    return blocks.gradients(outputs, (s, *parameters), upstream)


def tiles(z: Tensor, ids: Tensor, tile: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Rows and columns of each tile on and above the diagonal, and where their ids differ.

    None where all do, because their ranges are apart; on an accelerator this is not asked. A CPU
    compares and masks floats eight times as fast as it does whole numbers and booleans.
    """
    on_host = ids.device.type == "cpu"
    if on_host:  # small enough for floats
        ids = torch.unique(ids, return_inverse=True)[1].to(z.dtype)
    starts = range(0, len(ids), tile)
    spans = [ids[start : start + tile] for start in starts]
    ranges = [(span.min().item(), span.max().item()) if on_host else (0, 0) for span in spans]
    for i, rows in enumerate(starts):
        for j, columns in enumerate(starts[i:], start=i):
            apart = ranges[i][1] < ranges[j][0] or ranges[j][1] < ranges[i][0]
            others = None if apart else differing(spans[i].unsqueeze(1), spans[j])
            yield slice(rows, rows + tile), slice(columns, columns + tile), others


def differing(rows: Tensor, columns: Tensor) -> Tensor:
    """(a, b) where two ids differ: of floats 1 and 0, of whole numbers true and false."""
    if not rows.is_floating_point():
        return rows != columns
    return torch.ne(rows, columns, out=rows.new_empty(len(rows), len(columns)))


def masked(x: Tensor, others: Tensor | None) -> Tensor:
    """The tile, with zeros where a key is no negative."""
    return x if others is None else x * others
