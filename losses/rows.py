"""Functions of the scores of rows of anchors, block by block; none is kept.

A block's gradient goes back through its function alone: the products are added up in place, where
autograd would make each anew and join them. A mean weighs all rows alike, so that it has its
gradient with its value; of other functions the backward pass computes each block again.
"""

from collections.abc import Callable, Iterator, Sequence
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
    mean: bool = False,
) -> Tensor:
    """(A, ...) what block makes of each part of the anchors.

    Args:
        block: of a part, the cosines of its anchors with all keys, and its rows of pos.
        parts: of the anchors; one alone keeps its scores for the backward pass.
        anchor: (A, D) unit rows.
        keys: (K, D) unit rows.
        pos: (A, P) with a gradient of its own.
        parameters: tensors that block uses and that get a gradient.
        mean: whether the mean of it all is asked for, whose gradient needs no second pass.
    """
    if len(parts) > 1:
        return cast(Tensor, Rows.apply((block, parts, mean), anchor, keys, pos, *parameters))
    values = block(parts[0], anchor[parts[0]] @ keys.T, pos[parts[0]])
    return values.mean() if mean else values


class Rows(torch.autograd.Function):
    """The values of the blocks and their gradient, which cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, options: tuple[Block, Sequence[slice], bool], *inputs: Tensor) -> Tensor:
        block, parts, mean = ctx.options = options
        anchor, keys, pos, *_ = inputs
        ctx.sizes = [len(pos[rows]) for rows in parts]
        if mean and any(ctx.needs_input_grad):
            values, found = sloped(block, parts, inputs)
            ctx.save_for_backward(*(x if x is None else x / values.numel() for x in found))
            return values.mean()
        ctx.save_for_backward(*inputs)
        ctx.drawn = blocks.generator_states(anchor.device)
        pieces = (block(rows, anchor[rows] @ keys.T, pos[rows]) for rows in parts)
        values = joined(pieces, sum(ctx.sizes))
        return values.mean() if mean else values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        block, parts, mean = ctx.options
        if mean:
            return None, *(x if x is None else gradient * x for x in ctx.saved_tensors)
        device = gradient.device
        off = torch.autocast(device.type, enabled=False)
        with off, blocks.drawing_from(ctx.drawn, device):
            _, found = sloped(block, parts, ctx.saved_tensors, gradient.split(ctx.sizes))
        return None, *found


def sloped(
    block: Block,
    parts: Sequence[slice],
    inputs: Sequence[Tensor],
    upstream: Sequence[Tensor | None] | None = None,
) -> tuple[Tensor, list[Tensor | None]]:
    """The values of the blocks, and the gradients by the inputs of `over_rows`.

    Keys that are the anchors have none of their own.

    Args:
        upstream: by the values of each part; None: of their sum.
    """
    anchor, keys, pos, *own = inputs
    of_anchor, of_pos, *of_own = map(torch.zeros_like, (anchor, pos, *own))
    of_keys = of_anchor if anchor is keys else torch.zeros_like(keys)

    def values() -> Iterator[Tensor]:
        for rows, by in zip(parts, upstream or [None] * len(parts), strict=True):
            s, at = (x.detach().requires_grad_() for x in (anchor[rows] @ keys.T, pos[rows]))
            with torch.enable_grad():
                found = block(rows, s, at)
            weights = torch.ones_like(found) if by is None else by
            slope, of_pos[rows], *slopes = blocks.gradients(found, (s, at, *own), weights)
            of_anchor[rows] += slope @ keys
            of_keys.addmm_(slope.T, anchor[rows])
            for sum_, x in zip(of_own, slopes, strict=True):
                sum_ += x
            yield found.detach()

    whole = joined(values(), sum(len(pos[rows]) for rows in parts))
    return whole, [of_anchor, None if anchor is keys else of_keys, of_pos, *of_own]


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
