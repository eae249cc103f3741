"""Functions of a matrix of scores, block by block or tile by tile; none is kept."""

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Block = Callable[[slice, Tensor, Tensor], Tensor]
Summands = Callable[[Tensor], tuple[Tensor, ...]]
Sums = tuple[Summands, Summands]
# by all inputs: zero by those that the outputs do not use
gradients = partial(torch.autograd.grad, allow_unused=True, materialize_grads=True)
CPU_BLOCK, CPU_TILE = 3 * 2**16, 256  # what a CPU's caches like: 768 KiB in float32, 256 KiB
CPU_WHOLE = 2**18  # so few scores are one block, which is not computed again
# As many as keep an accelerator busy: there every operation on a block costs a launch, whatever
# its size. Rows keep about ten numbers for each score, tiles about five.
BLOCK, TILE = 2**25, 2**13
# bytes of a device's memory for each score of a block: a twelfth of it is used
BYTES_PER_SCORE = 2**9


def block_elements(device: torch.device, scores: int) -> int:
    if device.type == "cpu":
        return scores if scores <= CPU_WHOLE else CPU_BLOCK
    return min(BLOCK, memory(device) // BYTES_PER_SCORE)


def tile(device: torch.device) -> int:
    if device.type == "cpu":
        return CPU_TILE
    return min(TILE, math.isqrt(memory(device) // BYTES_PER_SCORE))


def memory(device: torch.device) -> int:
    """Return the bytes of the device's memory.

    All of it, not what is free now: sums over blocks of other sizes differ in their last digits,
    and these should not depend on who else uses the device.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return BYTES_PER_SCORE * TILE**2


@contextmanager
def drawing_from(states: list[Any], device: torch.device) -> Iterator[None]:
    """Draw from these states within the block, and go on after it as if nothing had been drawn."""
    later = generator_states(device)
    set_generators(states, device)
    try:
        yield
    finally:
        set_generators(later, device)


def generator_states(device: torch.device) -> list[Any]:
    numpy = sys.modules.get("numpy")
    here = torch.get_rng_state()
    there = here if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device)
    return [random.getstate(), here, there, *([numpy.random.get_state()] if numpy else [])]


def set_generators(states: list[Any], device: torch.device) -> None:
    of_python, here, there, *of_numpy = states
    random.setstate(of_python)
    torch.set_rng_state(here)
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(there, device)
    for state in of_numpy:
        sys.modules["numpy"].random.set_state(state)


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
    """The values of the blocks and their gradient, which cannot be differentiated again.

    A block's gradient goes back through its function alone: the products are added up in place,
    where autograd would make each anew and join them. A mean weighs all rows alike, so that it has
    its gradient with its value; of other functions the backward pass computes each block again.
    """

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
        ctx.drawn = generator_states(anchor.device)
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
        with off, drawing_from(ctx.drawn, device):
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
            slope, of_pos[rows], *slopes = gradients(found, (s, at, *own), weights)
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


def tiled_sums(
    z: Tensor, ids: Tensor, summands: Sums, tile: int, parameters: Sequence[Tensor] = ()
) -> tuple[Tensor, ...]:
    """(A, 1) each: sum_j summands(z_i z_j)[k] over the j of other ids.

    Args:
        z: (A, D) unit rows.
        ids: (A,) a row of the same id is left out.
        summands: elementwise, finite for every cosine; and what has their gradient, whatever its
            values.
        tile: rows and columns held at once.
        parameters: tensors that summands uses and that get a gradient.
    """
    found = TiledSums.apply(z, ids, (summands, tile), *parameters)
    return cast("tuple[Tensor, ...]", found)


class TiledSums(torch.autograd.Function):
    """The sums and their gradient, which cannot be differentiated again.

    Where every anchor is a key too (`both_views`), a tile above the diagonal serves its rows and
    its columns: half the scores are computed, and none is kept: the backward pass computes them
    again.

    PyTorch's `flex_attention` has such sums with a gradient too, but on CUDA alone ("FlexAttention
    does not support backward on CPU"), so that what a test on a CPU proves would not be what a card
    runs. It would also compute all scores where half are needed, and a product with values that no
    loss has.
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, ids: Tensor, options: tuple[Sums, int], *parameters: Tensor
    ) -> tuple[Tensor, ...]:
        (summands, _), tile = options
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
        (_, summands), tile = ctx.options
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
    s: Tensor, summands: Summands, slopes: Sequence[Tensor], parameters: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Gradients by each cosine of a tile, and by the parameters."""
    with torch.enable_grad():
        s = s.detach().requires_grad_()
        values = summands(s)
    moving = [(x, g) for x, g in zip(values, slopes, strict=True) if x.requires_grad]
    outputs, upstream = zip(*moving, strict=True)
    return gradients(outputs, (s, *parameters), upstream)


class SoftplusSlope(torch.autograd.Function):
    """The gradient of log(1 + e^x) without its value, which takes thirty times as long."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        slope: Tensor = torch.ops.aten.softplus_backward(upstream, *ctx.saved_tensors, 1, 20)
        return slope


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
