"""Sums of exponentials over a symmetric matrix of cosines, tile by tile, recomputed in the backward pass.

Where every anchor is a key too (`both_views`), a tile above the diagonal serves its rows and its
columns: half the scores are computed, and none is kept. Cosines are bounded, so constants replace
the running maxima of a logsumexp.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor

LogSummands = Callable[[Tensor], tuple[Tensor, ...]]


def largest(log_summands: LogSummands, like: Tensor) -> list[float] | None:
    """The largest value of each summand over all cosines; None if the smallest is too small beside it to be summed."""
    found = log_summands(torch.linspace(-1, 1, 129, dtype=like.dtype, device=like.device))
    room = (
        math.log(torch.finfo(like.dtype).max) - 28
    )  # the rest is for the number of keys and for the gradient's scale
    values = torch.stack([x.detach().expand(129) for x in found])
    if not bool((values.amax(dim=1) - values.amin(dim=1) < room).all()):
        return None
    return cast("list[float]", values.amax(dim=1).tolist())


def log_sums(
    z: Tensor, ids: Tensor, log_summands: LogSummands, peaks: list[float], tile: int
) -> tuple[Tensor, ...]:
    """(A, 1) each: log sum_j exp(log_summands(z_i z_j)[k]) over the j of other ids.

    Args:
        z: (A, D) unit rows.
        ids: (A,) a row of the same id is left out.
        log_summands: elementwise logs of what a cosine adds to each sum.
        peaks: what `largest` gives for them.
        tile: rows and columns held at once.
    """
    return cast("tuple[Tensor, ...]", TiledLogSums.apply(z, ids, log_summands, peaks, tile))


class TiledLogSums(torch.autograd.Function):
    """The sums and their gradient; a gradient that is itself differentiated takes the plain formula."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, ids: Tensor, log_summands: LogSummands, peaks: list[float], tile: int
    ) -> tuple[Tensor, ...]:
        sums = [z.new_zeros(len(z)) for _ in peaks]
        for rows, columns, same in tiles(ids, tile):
            logs = log_summands(z[rows] @ z[columns].T)
            for total, log, peak in zip(sums, logs, peaks, strict=True):
                summand = masked((log - peak).exp_(), same)
                total[rows] += summand.sum(dim=1)
                if rows != columns:
                    total[columns] += summand.sum(dim=0)
        found = tuple(
            (total.log() + peak).unsqueeze(1) for total, peak in zip(sums, peaks, strict=True)
        )
        ctx.save_for_backward(z, ids, *found)
        ctx.options = log_summands, peaks, tile
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        z, ids, *found = ctx.saved_tensors
        log_summands, peaks, tile = ctx.options
        with torch.autocast(z.device.type, enabled=False):
            if torch.is_grad_enabled():
                plain = zip(plain_log_sums(z, ids, log_summands), gradients, strict=True)
                sums, upstream = zip(*((x, g) for x, g in plain if x.requires_grad), strict=True)
                return (
                    *torch.autograd.grad(sums, z, upstream, create_graph=True),
                    None,
                    None,
                    None,
                    None,
                )
            scales = [
                g * (peak - f).exp() for g, f, peak in zip(gradients, found, peaks, strict=True)
            ]  # (A, 1)
            total = torch.zeros_like(z)
            for rows, columns, same in tiles(ids, tile):
                slope = tile_slope(
                    z[rows] @ z[columns].T,
                    log_summands,
                    peaks,
                    [(s[rows], s[columns]) for s in scales],
                )
                slope = masked(slope, same)
                total[rows].addmm_(slope, z[columns])
                if rows != columns:
                    total[columns].addmm_(slope.T, z[rows])
        return total, None, None, None, None


def tile_slope(
    s: Tensor, log_summands: LogSummands, peaks: list[float], scales: list[tuple[Tensor, Tensor]]
) -> Tensor:
    """Gradient by each cosine of a tile, which its row's and its column's sums both contain."""
    with torch.enable_grad():
        s = s.detach().requires_grad_()
        logs = log_summands(s)
    upstream = [  # of a log, (exp)' times what its row and its column get; a detached log has none
        (log, (log.detach() - peak).exp_().mul_(row + column.T))
        for log, peak, (row, column) in zip(logs, peaks, scales, strict=True)
        if log.requires_grad
    ]
    outputs, gradients = zip(*upstream, strict=True)
    return torch.autograd.grad(outputs, s, gradients)[0]


def tiles(ids: Tensor, tile: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Rows and columns of each tile on and above the diagonal, and where ids agree; None if they cannot."""
    starts = range(0, len(ids), tile)
    parts = [ids[start : start + tile] for start in starts]
    ranges = [(int(part.min()), int(part.max())) for part in parts]
    for i, rows in enumerate(starts):
        for j, columns in enumerate(starts[i:], start=i):
            apart = ranges[i][1] < ranges[j][0] or ranges[j][1] < ranges[i][0]
            same = None if apart else parts[i].unsqueeze(1) == parts[j]
            yield slice(rows, rows + tile), slice(columns, columns + tile), same


def masked(x: Tensor, same: Tensor | None) -> Tensor:
    """The tile, zeros put in place where a key is no negative."""
    return x if same is None else x.masked_fill_(same, 0)


def plain_log_sums(z: Tensor, ids: Tensor, log_summands: LogSummands) -> list[Tensor]:
    """The same sums, written down once and differentiable as often as wanted."""
    same = ids.unsqueeze(1) == ids
    logs = log_summands((z @ z.T).masked_fill(same, 0))
    return [torch.logsumexp(log.masked_fill(same, -math.inf), dim=1, keepdim=True) for log in logs]
