"""Sums of exponentials over a symmetric matrix of cosines, tile by tile.

Where every anchor is a key too (`both_views`), a tile above the diagonal serves its rows and its
columns: half the scores are computed, and none is kept: the backward pass computes them again.
Cosines are bounded, so constants replace the running maxima of a logsumexp.

PyTorch's `flex_attention` has such sums with a gradient too, but on CUDA alone ("FlexAttention does
not support backward on CPU"), so that what a test on a CPU proves would not be what a card runs. It
would also compute all scores where half are needed, and a product with values that no loss has.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor

LogSummands = Callable[[Tensor], tuple[Tensor, ...]]


def largest_summands(log_summands: LogSummands, dtype: torch.dtype) -> list[float] | None:
    """The largest value of each summand over all cosines of that type, computed on the CPU.

    None if the smallest is too small beside it to be summed.
    """
    # 129 cosines, -1, 0 and 1 among them, are close enough to the extremes of a smooth summand
    logs = log_summands(torch.linspace(-1, 1, 129, dtype=dtype))
    # e^28 is left for the number of keys and for the scale of the gradient
    room = math.log(torch.finfo(dtype).max) - 28
    values = torch.stack([x.detach().expand(129) for x in logs])
    if not bool((values.amax(dim=1) - values.amin(dim=1) < room).all()):
        return None
    return cast("list[float]", values.amax(dim=1).tolist())


def log_sums(
    z: Tensor,
    ids: Tensor,
    log_summands: LogSummands,
    peaks: list[float],
    tile: int,
    parameters: Sequence[Tensor] = (),
) -> tuple[Tensor, ...]:
    """(A, 1) each: log sum_j exp(log_summands(z_i z_j)[k]) over the j of other ids.

    Args:
        z: (A, D) unit rows.
        ids: (A,) a row of the same id is left out.
        log_summands: elementwise logs of what a cosine adds to each sum.
        peaks: what `largest_summands` gives for them.
        tile: rows and columns held at once.
        parameters: tensors that log_summands uses and that get a gradient.
    """
    options = log_summands, peaks, tile
    return cast("tuple[Tensor, ...]", TiledLogSums.apply(z, ids, options, *parameters))


class TiledLogSums(torch.autograd.Function):
    """The sums and their gradient.

    A gradient that is itself differentiated takes the plain formula.
    """

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        ids: Tensor,
        options: tuple[LogSummands, list[float], int],
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        log_summands, peaks, tile = options
        sums = [z.new_zeros(len(z)) for _ in peaks]
        for rows, columns, same in tiles(ids, tile):
            logs = log_summands(z[rows] @ z[columns].T)
            for total, log, peak in zip(sums, logs, peaks, strict=True):
                summand = masked((log - peak).exp_(), same)
                total[rows].add_(summand.sum(dim=1))
                if rows != columns:
                    total[columns].add_(summand.sum(dim=0))
        results = tuple(
            (total.log() + peak).unsqueeze(1) for total, peak in zip(sums, peaks, strict=True)
        )
        ctx.save_for_backward(z, ids, *results, *parameters)
        ctx.options = options
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        log_summands, peaks, tile = ctx.options
        z, ids, *rest = ctx.saved_tensors
        results, parameters = rest[: len(peaks)], rest[len(peaks) :]
        with torch.autocast(z.device.type, enabled=False):
            if torch.is_grad_enabled():
                slopes = plain_slopes(z, ids, log_summands, gradients, parameters)
                return slopes[0], None, None, *slopes[1:]
            scales = [
                g * (peak - x).exp() for g, x, peak in zip(gradients, results, peaks, strict=True)
            ]  # (A, 1)
            total, own = torch.zeros_like(z), [torch.zeros_like(p) for p in parameters]
            for rows, columns, same in tiles(ids, tile):
                slope, *own_slopes = tile_slopes(
                    z[rows] @ z[columns].T,
                    log_summands,
                    peaks,
                    [(s[rows], s[columns]) for s in scales],
                    same,
                    parameters,
                )
                slope = masked(slope, same)
                total[rows].addmm_(slope, z[columns])
                if rows != columns:
                    total[columns].addmm_(slope.T, z[rows])
                # a tile on the diagonal has each pair twice, and its row's and its column's scale
                for sum_, x in zip(own, own_slopes, strict=True):
                    sum_.add_(x, alpha=1 if rows != columns else 0.5)
        return total, None, None, *own


def tile_slopes(
    s: Tensor,
    log_summands: LogSummands,
    peaks: list[float],
    scales: list[tuple[Tensor, Tensor]],
    same: Tensor | None,
    parameters: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """Gradients by each cosine of a tile, and by the parameters.

    The sums of a cosine's row and of its column both contain it.
    """
    with torch.enable_grad():
        s = s.detach().requires_grad_()
        logs = log_summands(s)
    upstream = [  # of a log, (exp)' times what its row and its column get; a detached log has none
        (log, (log.detach() - peak).exp_().mul_(row + column.T))
        for log, peak, (row, column) in zip(logs, peaks, scales, strict=True)
        if log.requires_grad
    ]
    outputs, gradients = zip(*upstream, strict=True)
    if parameters:  # they sum over the tile; the cosines' own gradients are masked by the caller
        gradients = tuple(masked(gradient, same) for gradient in gradients)
    return torch.autograd.grad(
        outputs, (s, *parameters), gradients, allow_unused=True, materialize_grads=True
    )


def plain_slopes(
    z: Tensor,
    ids: Tensor,
    log_summands: LogSummands,
    gradients: Sequence[Tensor],
    parameters: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """The gradient by the rows and by the parameters that can be differentiated again."""
    plain = zip(plain_log_sums(z, ids, log_summands), gradients, strict=True)
    sums, upstream = zip(*((x, g) for x, g in plain if x.requires_grad), strict=True)
    return torch.autograd.grad(
        sums,
        (z, *parameters),
        upstream,
        create_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )


def tiles(ids: Tensor, tile: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Rows and columns of each tile on and above the diagonal, and where their ids agree.

    None where they cannot, because their ranges are apart; on an accelerator this is not asked.
    """
    starts = range(0, len(ids), tile)
    spans = [ids[start : start + tile] for start in starts]
    on_host = ids.device.type == "cpu"
    ranges = [(int(span.min()), int(span.max())) if on_host else (0, 0) for span in spans]
    for i, rows in enumerate(starts):
        for j, columns in enumerate(starts[i:], start=i):
            apart = ranges[i][1] < ranges[j][0] or ranges[j][1] < ranges[i][0]
            same = None if apart else spans[i].unsqueeze(1) == spans[j]
            yield slice(rows, rows + tile), slice(columns, columns + tile), same


def masked(x: Tensor, same: Tensor | None) -> Tensor:
    """The tile, zeros put in place where a key is no negative."""
    return x if same is None else x.masked_fill_(same, 0)


def plain_log_sums(z: Tensor, ids: Tensor, log_summands: LogSummands) -> list[Tensor]:
    """Compute the same sums plainly, differentiable any number of times."""
    same = ids.unsqueeze(1) == ids
    logs = log_summands((z @ z.T).masked_fill(same, 0))
    return [torch.logsumexp(log.masked_fill(same, -math.inf), dim=1, keepdim=True) for log in logs]
