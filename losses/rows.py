"""Functions of the scores of rows of anchors, block by block; none is kept.

The backward pass computes a block's scores again, and goes back through its function alone: the
products of the gradient are added up in place, where autograd would make each anew and join them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from contrastbench.losses import blocks

Block = Callable[[slice, Tensor, Tensor], Tensor]


def fill(x: Tensor, holes: Tensor, value: float) -> Tensor:
    """Return x, (a, K), with that value in the holes: a mask of its shape, or flat numbers.

    >>> fill(torch.ones(2, 2), torch.tensor([1]), 0.0)
    tensor([[1., 0.],
            [1., 1.]])
    """
    if holes.dtype == torch.bool:
        return x.masked_fill(holes, value)
    return x.flatten().index_fill(0, holes, value).view_as(x)


def over_rows(
    block: Block,
    parts: Sequence[slice],
    anchor: Tensor,
    keys: Tensor,
    pos: Tensor,
    parameters: Sequence[Tensor] = (),
) -> Tensor:
    """(A, ...) what block makes of each part of the anchors.

    Args:
        block: of a part, the cosines of its anchors with all keys, and its rows of pos.
        parts: of the anchors; one alone keeps its scores for the backward pass.
        anchor: (A, D) unit rows.
        keys: (K, D) unit rows.
        pos: (A, P) with a gradient of its own.
        parameters: tensors that block uses and that get a gradient.
    """
    if len(parts) > 1:
        return cast(Tensor, Rows.apply(block, parts, anchor, keys, pos, *parameters))
    return block(parts[0], anchor[parts[0]] @ keys.T, pos[parts[0]])


class Rows(torch.autograd.Function):
    """The values of the blocks and their gradient, which cannot be differentiated again."""

    @staticmethod
    def forward(
        ctx: Any,
        block: Block,
        parts: Sequence[slice],
        anchor: Tensor,
        keys: Tensor,
        pos: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(anchor, keys, pos, *parameters)
        ctx.block, ctx.parts, ctx.drawn = block, parts, blocks.generator_states(anchor.device)
        ctx.same, ctx.sizes = anchor is keys, [len(pos[rows]) for rows in parts]
        values = (block(rows, anchor[rows] @ keys.T, pos[rows]) for rows in parts)
        return joined(values, sum(ctx.sizes))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        anchor, keys, *inputs = ctx.saved_tensors
        of_anchor, of_pos, *own = map(torch.zeros_like, (anchor, *inputs))
        of_keys = of_anchor if ctx.same else torch.zeros_like(keys)
        off = torch.autocast(anchor.device.type, enabled=False)
        with off, blocks.drawing_from(ctx.drawn, anchor.device):
            for rows, upstream in zip(ctx.parts, gradient.split(ctx.sizes), strict=True):
                slope, of_pos[rows], *slopes = block_slopes(
                    partial(ctx.block, rows),
                    anchor[rows] @ keys.T,
                    inputs[0][rows],
                    inputs[1:],
                    upstream,
                )
                of_anchor[rows] += slope @ keys
                of_keys.addmm_(slope.T, anchor[rows])
                for sum_, x in zip(own, slopes, strict=True):
                    sum_ += x
        return None, None, of_anchor, None if ctx.same else of_keys, of_pos, *own


def joined(pieces: Iterator[Tensor], rows: int) -> Tensor:
    """Return pieces of so many rows as one tensor, into which each goes when it comes.

    If they were kept, small ones between large ones that are freed, these would leave holes in
    memory.
    """
    first = next(pieces)
    whole, end = first.new_empty(rows, *first.shape[1:]), 0
    for piece in chain([first], pieces):
        whole[end : end + len(piece)] = piece
        end += len(piece)
    return whole


def block_slopes(
    block: Callable[[Tensor, Tensor], Tensor],
    s: Tensor,
    pos: Tensor,
    parameters: Sequence[Tensor],
    upstream: Tensor,
) -> tuple[Tensor, ...]:
    """Gradients by a block's cosines, with keys and with positives, and by the parameters."""
    with torch.enable_grad():
        s, pos = s.detach().requires_grad_(), pos.detach().requires_grad_()
        values = block(s, pos)
    return torch.autograd.grad(
        values, (s, pos, *parameters), upstream, allow_unused=True, materialize_grads=True
    )
