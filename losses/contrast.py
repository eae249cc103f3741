"""Pairings turn the embeddings of views into anchors, positives and keys."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import torch
from torch import Generator, Tensor

from contrastbench.errors import UserError

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)  # what labels may be
FEW_HOLES = 1 / 16  # of a matrix: so many places are filled faster one by one than by a mask


@dataclass(frozen=True)
class Contrast:
    """Anchors, their positives, and the keys among which they find their negatives.

    All rows are unit vectors, so inner products are cosines. Ids say which keys are an anchor's
    negatives: a key that has the anchor's id is not its negative; the id -1 is a negative for
    everybody (a queue). Anchors with fewer positives than others have theirs padded with rows that
    `padding` marks.

    Where the positives are keys, `positive_key` tells which, and each is scored once, not twice.
    Then `positive` may be None, so that rows of many positives are not copied (`same_class`);
    `positives` gives the rows of either.

    `views` are the embeddings of two whole views as the model gave them, row i of both from sample
    i. Losses of views see these alone. Pairings of anything but two views have none.

    `index` says of which training sample each anchor is: its row of the training set. Losses that
    keep numbers of each sample need it. `indexed` adds it to a contrast.
    """

    anchor: Tensor  # (A, D)
    positive: Tensor | None  # (A, P, D)
    keys: Tensor  # (K, D)
    anchor_id: Tensor  # (A,)
    key_id: Tensor  # (K,)
    positive_in_denominator: bool = True
    mean_over_negatives: bool = False  # the denominator's mean, not its sum, over the negatives
    padding: Tensor | None = None  # (A, P) True where a positive is none
    positive_key: Tensor | None = None  # (A, P) numbers of the keys that the positives are
    negatives: int | None = None  # of each anchor, where the pairing knows that all have as many
    # `positive`, or else `positive_key`, where each anchor is a positive of its own positives: it
    # is the same object, so a contrast with other positives is not taken for such a one
    partners: Tensor | None = None
    views: tuple[Tensor, Tensor] | None = None  # (N, D) each, rows of any length
    own_view: bool = False  # whether an anchor's negatives are rows of its own view alone
    index: Tensor | None = None  # (A,) rows of the training set

    def __post_init__(self) -> None:
        """Check shapes, here and once, and widen half precision.

        Cosines in bf16 over a temperature of 0.05 are wrong by a factor of 20.
        """
        if self.positive is None and self.positive_key is None:
            raise UserError("a Contrast without positive needs positive_key")
        for name, expected in self.shapes().items():
            tensor = getattr(self, name)
            if tensor is not None and tensor.shape != expected:
                shape = tuple(tensor.shape)
                raise UserError(f"Contrast.{name} has shape {shape}, expected {expected}")
        for name in ("anchor", "positive", "keys"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, widen(getattr(self, name)))
        if self.views is not None:
            same_shape(*self.views)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape that each field must have beside the others."""
        (anchors, dim), keys = self.anchor.shape, len(self.keys)
        positive = self.positive_key if self.positive is None else self.positive
        assert positive is not None, "one of the two is there"
        each = (anchors, positive.shape[1] if positive.ndim > 1 else 1)
        return {
            "positive": (*each, dim),
            "keys": (keys, dim),
            "anchor_id": (anchors,),
            "key_id": (keys,),
            "padding": each,
            "positive_key": each,
            "index": (anchors,),
        }

    @property
    def mutual(self) -> bool:
        """Whether the anchors are the keys, and each is a positive of its own positives."""
        positives = self.positive_key if self.positive is None else self.positive
        same = self.anchor is self.keys and self.anchor_id is self.key_id
        return same and positives is self.partners

    def positives(self, rows: slice = slice(None)) -> Tensor:
        """(a, P, D) the positives of some rows of anchors."""
        if self.positive is not None:
            return self.positive[rows]
        assert self.positive_key is not None, "checked when it was made"
        return self.keys[self.positive_key[rows]]

    def count(self, rows: slice = slice(None)) -> Tensor:
        """(a, 1) how many negatives some rows of anchors have."""
        ids = self.anchor_id[rows].contiguous()
        if self.negatives is not None:
            return ids.new_full((len(ids), 1), self.negatives)
        first, end = self.same_ids(ids)
        return (len(self.key_id) - end + first).unsqueeze(1)

    @cached_property
    def sorted_keys(self) -> tuple[Tensor, Tensor]:
        """(K,) the keys' ids in ascending order, and the keys in it."""
        return tuple(self.key_id.sort())  # type: ignore[return-value]

    def same_ids(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """(a,) each where the keys with an anchor's id begin among the sorted ones, and end."""
        keys, _ = self.sorted_keys
        return torch.searchsorted(keys, ids), torch.searchsorted(keys, ids, right=True)

    def holes(self, rows: slice = slice(None)) -> Tensor:
        """Where keys are no negatives of some rows of anchors, for `rows.fill`.

        (a, K) a mask; on the CPU numbers of the places in it, which is faster if they are few. To
        ask an accelerator how many there are would wait.
        """
        ids = self.anchor_id[rows].contiguous()
        if ids.device.type == "cpu":
            first, end = self.same_ids(ids)
            row = torch.repeat_interleave(end - first)
            if len(row) <= FEW_HOLES * len(ids) * len(self.keys):
                ends = (end - first).cumsum(0)
                rank = torch.arange(len(row)) + (end - ends)[row]
                return row * len(self.keys) + self.sorted_keys[1][rank]
        return ids.unsqueeze(1) == self.key_id


def unless(wrong: Tensor, x: Tensor, message: str) -> Tensor:
    """Return x, or raise if anything is wrong; on a device NaN stands for the error.

    On the CPU this raises. Elsewhere to ask would make every step wait for the device; there x is
    NaN where it is wrong, and so is the loss, which training looks at after each epoch.
    """
    if wrong.device.type == "cpu":
        if bool(wrong.any()):
            raise UserError(message)
        return x
    return x.masked_fill(wrong, math.nan)


def widen(x: Tensor) -> Tensor:
    """Float32 for half-precision tensors, others as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def unit(z: Tensor) -> Tensor:
    """Rows of length one, in float32 or better.

    A row of zeros stays zero and has a bounded gradient. Float32 holds no square of a length that
    is beyond 1e19 or below 1e-19: such rows do not get length one.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    if not z.is_floating_point():
        raise UserError(f"embeddings must be floating-point numbers, got {z.dtype}: give z.float()")
    z = widen(z)
    norm = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    return z / torch.where(norm > 0, norm, torch.ones_like(norm))


def both_views(
    z1: Tensor, z2: Tensor, positives: Sequence[Tensor] | None = None, labels: Tensor | None = None
) -> Contrast:
    """SimCLR's pairing: both views are anchors, all embeddings of other samples negatives.

    Each anchor has 2N - 2 negatives.
    Reproduces SimCLR, DCL, HCL and ADNCE on images; AttentionNCE with `positives`, further views of
    the same N samples that take the partner's place as positives; SimCLR without false negatives
    with `labels`.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.
        positives: further views, each (N, D); the positive of each anchor is then these views, not
            its partner.
        labels: (N,) classes, from 0: samples of the anchor's class are then no negatives.

    >>> contrast = both_views(torch.eye(4), torch.eye(4))
    >>> contrast.anchor.shape, contrast.positive.shape, contrast.positive_in_denominator
    (torch.Size([8, 4]), torch.Size([8, 1, 4]), True)
    """
    same_shape(z1, z2, *(positives or ()))
    z1, ids = (z1, row_ids(z1)) if labels is None else with_class_ids(z1, labels)
    keys = unit(torch.cat([widen(z1), widen(z2)]))
    if positives:
        more = unit(torch.stack([widen(z) for z in positives], dim=1))  # (N, P, D)
        positive = more.repeat(2, 1, 1)
    else:
        positive = keys.roll(len(z1), 0).unsqueeze(1)
    ids, negatives = ids.repeat(2), None if labels is not None else len(keys) - 2
    whole = None if positives or labels is not None else (z1, z2)
    mates = None if positives else positive
    return Contrast(
        keys, positive, keys, ids, ids, negatives=negatives, partners=mates, views=whole
    )


def same_class(z1: Tensor, z2: Tensor | None, labels: Tensor) -> Contrast:
    """The supervised pairing: the other embeddings of an anchor's class are its positives.

    The rest are its negatives. Reproduces AttentionNCE's supervised setting (Liu et al. 2025,
    section 4.4). With `supcon` it is supervised contrastive learning (Khosla et al. 2020), whose
    positives share one denominator. With `infonce` each positive has one without the others: that
    is SINCERE (Feeney and Hughes 2023). Of one view it is metric learning's pairing: another sample
    of each class has to be there, or a loss that reads positives raises. The ids of anchors and
    keys are the classes.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.
            None in place of the second: there is one view.
        labels: (N,) classes, from 0.

    >>> contrast = same_class(torch.eye(3), torch.eye(3), torch.tensor([0, 0, 1]))
    >>> contrast.positives().shape, (~contrast.padding).sum(dim=1).tolist()
    (torch.Size([6, 3, 3]), [3, 3, 1, 3, 3, 1])
    """
    views = [z1] if z2 is None else [z1, z2]
    same_shape(*views)
    views[0], ids = with_class_ids(z1, labels)
    keys, ids = unit(torch.cat([widen(z) for z in views])), ids.repeat(len(views))
    mates, padding = classmates(ids)
    return Contrast(keys, None, keys, ids, ids, padding=padding, positive_key=mates, partners=mates)


def classmates(ids: Tensor) -> tuple[Tensor, Tensor]:
    """(A, P) the other rows of each row's class in ascending order, and where they are padding.

    Padding is the row's own number, which is no negative of its own. On an accelerator P is A: all
    rows, those of other classes marked as padding.

    >>> classmates(torch.tensor([7, 5, 7]))
    (tensor([[2],
            [1],
            [0]]), tensor([[False],
            [ True],
            [False]]))
    """
    if ids.device.type != "cpu":  # to ask for the largest class would wait for the device
        return row_ids(ids).expand(len(ids), -1), (ids.unsqueeze(1) != ids).fill_diagonal_(True)
    order = ids.argsort(stable=True)  # one class after the other
    _, inverse, size = torch.unique(ids, return_inverse=True, return_counts=True)
    first = (size.cumsum(0) - size)[inverse].unsqueeze(1)  # of its class, in that order
    rank = torch.empty_like(order).scatter_(0, order, row_ids(ids)).unsqueeze(1) - first
    column = torch.arange(int(size.max()) - 1, device=ids.device)
    padding = column >= (size[inverse] - 1).unsqueeze(1)
    # int32 halves the memory of the largest tensor here; a row skips itself
    slot = (first.int() + column.int()).add_(column >= rank).masked_fill_(padding, 0)
    mates = order.index_select(0, slot.flatten()).view_as(slot)
    return torch.where(padding, row_ids(ids).unsqueeze(1), mates, out=mates), padding


def other_view(z1: Tensor, z2: Tensor, mean_over_negatives: bool = True) -> Contrast:
    """Pair the first view's rows with the second view's, as GraphCL does.

    Another sample's row is a negative, the same sample's the positive. The positive is not in the
    denominator. ADNCE's graph code takes the mean over the N - 1 negatives, GraphCL's the sum
    (`mean_over_negatives=False`); for losses that take the denominator's logarithm this is a
    constant.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.

    >>> other_view(torch.eye(4), torch.eye(4)).positive_in_denominator
    False
    """
    z1, z2 = alike(z1, z2)
    ids, keys = row_ids(z1), unit(z2)
    return Contrast(
        unit(z1),
        keys.unsqueeze(1),
        keys,
        ids,
        ids,
        positive_in_denominator=False,
        mean_over_negatives=mean_over_negatives,
        negatives=len(keys) - 1,
        views=(z1, z2),
    )


def whole_row(z1: Tensor, z2: Tensor) -> Contrast:
    """Pair each row of the first view with the whole second view, as SimCSE does.

    Its positive is among the keys. InfoNCE over it is the cross-entropy of the N x N cosine matrix.
    In ADNCE's sentence code the positive is one of the re-weighted columns: nothing is removed from
    the row, and nothing is added to it.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.

    >>> whole_row(torch.eye(4), torch.eye(4)).key_id.tolist()
    [-1, -1, -1, -1]
    """
    z1, z2 = alike(z1, z2)
    ids, keys = row_ids(z1), unit(z2)
    everybody = torch.full_like(ids, -1)
    return Contrast(
        unit(z1),
        keys.unsqueeze(1),
        keys,
        ids,
        everybody,
        positive_in_denominator=False,
        positive_key=ids.unsqueeze(1),
        negatives=len(keys),
        views=(z1, z2),
    )


def own_view(z1: Tensor, z2: Tensor) -> Contrast:
    """Pair the first view's rows with each other, as DHEL and KCL do; the partner is the positive.

    The other N - 1 rows of the anchor's own view are its negatives. The second view's rows are
    anchors of `own_view(z2, z1)`: a domain gives both contrasts, whose losses add up.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.

    >>> contrast = own_view(torch.eye(4), torch.eye(4))
    >>> contrast.anchor is contrast.keys, contrast.count(slice(2)).tolist()
    (True, [[3], [3]])
    """
    z1, z2 = alike(z1, z2)
    ids, keys = row_ids(z1), unit(z1)
    positive, negatives = unit(z2).unsqueeze(1), len(keys) - 1
    views = (z1, z2)
    return Contrast(keys, positive, keys, ids, ids, negatives=negatives, views=views, own_view=True)


def query_key(queries: Tensor | Sequence[Tensor], keys: Tensor) -> Contrast:
    """Pair every crop's query with the keys of one target view, as MoCo v3 does.

    The key of its own instance is its positive, the others its negatives. With several target views
    build one Contrast for each and add their losses (MoCo v3; RényiCL with multi-crop).

    Args:
        queries: (N, D), or (C, N, D), or a sequence of C tensors (N, D): the online network's
            crops.
        keys: (N, D) the target network's embeddings of one view; pass them detached for a momentum
            encoder.

    >>> query_key([torch.eye(4), torch.eye(4)], torch.eye(4)).anchor.shape
    torch.Size([8, 4])
    """
    single = isinstance(queries, Tensor) and queries.ndim == 2
    *crops, keys = alike(*([queries] if single else queries), keys)
    if not crops:
        raise UserError("query_key got no crop: give the embeddings of one at least")
    key, key_id = unit(keys), row_ids(keys)
    positive = key.repeat(len(crops), 1).unsqueeze(1)
    ids, negatives = key_id.repeat(len(crops)), len(key) - 1
    anchor = unit(torch.cat([widen(crop) for crop in crops]))
    views = (crops[0], keys) if len(crops) == 1 else None
    return Contrast(anchor, positive, key, ids, key_id, negatives=negatives, views=views)


def part_of(whole: Tensor, part: Tensor, starts: Tensor, most: int) -> Contrast:
    """Pair each whole with its own parts and with those of all others, as InfoGraph does.

    A graph's nodes are its positives, the nodes of other graphs its negatives (Sun et al. 2020,
    equation 4). A whole has as many positives as parts; its term is the mean over them.

    Args:
        whole: (N, D) embeddings; need not be normalised.
        part: (M, D) embeddings of the parts of the first whole, of the second, ...
        starts: (N + 1,) where each whole's parts begin, and M; each has one at least.
        most: parts that a whole has at most.

    >>> contrast = part_of(torch.eye(2), torch.eye(3)[:, :2], torch.tensor([0, 2, 3]), 2)
    >>> contrast.positive_key.tolist(), contrast.padding.tolist(), contrast.key_id.tolist()
    ([[0, 1], [2, 2]], [[False, False], [False, True]], [0, 0, 1])
    """
    ids, column = row_ids(whole), torch.arange(most, device=whole.device)
    padding = column >= starts.diff().unsqueeze(1)
    nodes = (starts[:-1].unsqueeze(1) + column).where(~padding, starts[:-1].unsqueeze(1))
    owner = torch.searchsorted(starts, row_ids(part), right=True) - 1
    return Contrast(unit(whole), None, unit(part), ids, owner, padding=padding, positive_key=nodes)


def whole_of(part: Tensor, whole: Tensor, starts: Tensor) -> Contrast:
    """Pair each part with its own whole and with all others, as InfoGraph's code does.

    A node's graph is its positive, the other graphs of the batch its negatives. A mean over anchors
    is one over all nodes, so large graphs count more than in `part_of`.

    Args:
        part: (M, D) embeddings of the parts of the first whole, of the second, ...; need not be
            normalised.
        whole: (N, D) embeddings.
        starts: (N + 1,) where each whole's parts begin, and M.

    >>> contrast = whole_of(torch.eye(3)[:, :2], torch.eye(2), torch.tensor([0, 2, 3]))
    >>> contrast.positive_key.tolist(), contrast.key_id.tolist()
    ([[0], [0], [1]], [0, 1])
    """
    owner = torch.searchsorted(starts, row_ids(part), right=True) - 1
    ids = row_ids(whole)
    return Contrast(unit(part), None, unit(whole), owner, ids, positive_key=owner.unsqueeze(1))


def indexed(contrast: Contrast, index: Tensor) -> Contrast:
    """Tell of which training sample each anchor is, for losses that keep numbers of each.

    Args:
        contrast: of a batch; its anchors are views, one after the other, each of all samples.
        index: (N,) the row of each sample of the batch in the training set.

    >>> indexed(both_views(torch.eye(2), torch.eye(2)), torch.tensor([7, 5])).index
    tensor([7, 5, 7, 5])
    """
    views, rest = divmod(len(contrast.anchor), index.numel() or 2 * len(contrast.anchor))
    if index.ndim != 1 or rest or not views:
        raise UserError(
            f"index has shape {tuple(index.shape)} for {len(contrast.anchor)} anchors: "
            "give one number for each sample of the batch"
        )
    return replace(contrast, index=index if views == 1 else index.repeat(views))


def queued(contrast: Contrast, rows: Tensor) -> Contrast:
    """Add rows that are negatives for every anchor, such as the keys of earlier batches in MoCo.

    Args:
        contrast: of a batch.
        rows: (M, D) unit rows, which get no gradient; or none yet, of any shape.

    >>> contrast = queued(other_view(torch.eye(4), torch.eye(4)), torch.eye(2, 4))
    >>> contrast.key_id.tolist(), contrast.negatives
    ([0, 1, 2, 3, -1, -1], 5)
    """
    return extended(contrast, rows.detach().to(contrast.keys).reshape(-1, contrast.keys.shape[1]))


def against(contrast: Contrast, z: Tensor) -> Contrast:
    """Add hard negatives, which are negatives for every anchor, as in supervised SimCSE.

    Losses of views would not see them, so there are no views.

    Args:
        contrast: of a batch.
        z: (M, D) their embeddings, which get a gradient; need not be normalised.

    >>> contrast = against(whole_row(torch.eye(4), torch.eye(4)), 2 * torch.eye(4))
    >>> contrast.keys.shape, contrast.negatives, contrast.views
    (torch.Size([8, 4]), 8, None)
    """
    return replace(extended(contrast, unit(z)), views=None)


def extended(contrast: Contrast, more: Tensor) -> Contrast:
    """Add (M, D) unit rows that are negatives for every anchor."""
    return replace(
        contrast,
        keys=torch.cat([contrast.keys, more]),
        key_id=torch.cat([contrast.key_id, contrast.key_id.new_full((len(more),), -1)]),
        negatives=None if contrast.negatives is None else contrast.negatives + len(more),
    )


def permuted(contrast: Contrast, share: float = 1.0, rng: Generator | None = None) -> Contrast:
    """Give every anchor, or a drawn share, the positives of another sample a third of a batch away.

    A control: positives that do not belong together must teach nothing. Negatives stay as they are.
    The second of two whole views is moved likewise. Of several crops each has as many anchors as
    there are keys, so the move is a third of these: never a whole crop. Anchors whose positives are
    keys are no crops.

    >>> contrast = other_view(torch.eye(4), torch.eye(4))
    >>> permuted(contrast).positives().argmax(dim=2).flatten().tolist()
    [3, 0, 1, 2]
    """
    device, anchors = contrast.anchor.device, len(contrast.anchor)
    of_view = anchors if contrast.positive_key is not None else min(anchors, len(contrast.keys))
    chosen = torch.rand(anchors, generator=rng).to(device) < share if share < 1 else None

    def moved(x: Tensor, rows: int) -> Tensor:
        other = x.roll(max(1, rows // 3), 0)
        if chosen is None:
            return other
        return other.where(chosen[: len(x)].view(-1, *[1] * (x.ndim - 1)), x)

    there: dict[str, Any] = {
        name: moved(tensor, of_view)
        for name in ("positive", "positive_key", "padding")
        if (tensor := getattr(contrast, name)) is not None
    }
    if contrast.views is not None:
        first, second = contrast.views
        return replace(contrast, **there, views=(first, moved(second, len(first))))
    return replace(contrast, **there)


def row_ids(z: Tensor) -> Tensor:
    return torch.arange(len(z), device=z.device)


def with_class_ids(z: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The rows, and their classes as ids; -1 is taken: it marks keys that all have as negatives."""
    message = f"labels must be {len(z)} whole numbers from 0, one for each sample"
    if labels.shape != z.shape[:1] or labels.dtype not in WHOLE:
        raise UserError(message)
    return unless((labels < 0).unsqueeze(1), z, message), labels.to(z.device)


def alike(*views: Tensor) -> list[Tensor]:
    """Return views of one shape in the widest of their precisions."""
    same_shape(*views)
    kind = reduce(torch.promote_types, [z.dtype for z in views])
    return [z.to(kind) for z in views]


def same_shape(first: Tensor, *others: Tensor) -> None:
    for z in (first, *others):
        if z.ndim != 2 or z.shape != first.shape:
            shapes = f"{tuple(first.shape)} and {tuple(z.shape)}"
            raise UserError(f"views must be matrices (N, D) of one shape, got {shapes}")
