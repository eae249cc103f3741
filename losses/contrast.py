"""Who meets whom: the pairings that turn embeddings of views into anchors, positives and keys."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from contrastbench.losses.errors import UserError


@dataclass(frozen=True)
class Contrast:
    """Anchors, their positives, and the keys among which they find their negatives.

    All rows are unit vectors, so inner products are cosines. Which keys are an anchor's negatives
    is said by
    ids: a key that has the anchor's id is not its negative; the id -1 is a negative for everybody
    (a queue). Anchors with fewer positives than others have theirs padded with rows that `padding`
    marks.
    """

    anchor: Tensor  # (A, D)
    positive: Tensor  # (A, P, D)
    keys: Tensor  # (K, D)
    anchor_id: Tensor  # (A,)
    key_id: Tensor  # (K,)
    positive_in_denominator: bool = True
    mean_over_negatives: bool = (
        False  # the denominator's mean instead of its sum over the negatives
    )
    padding: Tensor | None = None  # (A, P) True where a row of positive is none
    positive_key: Tensor | None = (
        None  # (A, P) which negatives the positives are, where they are: one score, not two
    )

    def __post_init__(self) -> None:
        """Shapes are checked here, once, and half precision is widened: bf16 cosines over 0.05 are 20 times wrong."""
        anchors, dim = self.anchor.shape
        expected = {
            "positive": (anchors, self.positive.shape[1] if self.positive.ndim == 3 else 1, dim),
            "keys": (len(self.keys), dim),
            "anchor_id": (anchors,),
            "key_id": (len(self.keys),),
        }
        if self.padding is not None:
            expected["padding"] = expected["positive"][:2]
        if self.positive_key is not None:
            expected["positive_key"] = expected["positive"][:2]
        for name, shape in expected.items():
            found = tuple(getattr(self, name).shape)
            if found != shape:
                raise UserError(f"Contrast.{name} has shape {found}, expected {shape}")
        for name in ("anchor", "positive", "keys"):
            object.__setattr__(self, name, widen(getattr(self, name)))


def widen(x: Tensor) -> Tensor:
    """Float32 for half-precision tensors, others as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def unit(z: Tensor) -> Tensor:
    """Rows of length one, in float32 or better; a row of zeros stays zero and has a bounded gradient.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    z = widen(z)
    norm = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    return z / torch.where(norm > 0, norm, torch.ones_like(norm))


def both_views(
    z1: Tensor, z2: Tensor, positives: Sequence[Tensor] | None = None, labels: Tensor | None = None
) -> Contrast:
    """SimCLR's pairing: both views are anchors, all 2N - 2 embeddings of other samples are negatives.

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
    keys = unit(torch.cat([widen(z1), widen(z2)]))
    if positives:
        positive = unit(torch.stack([widen(z) for z in positives], dim=1)).repeat(
            2, 1, 1
        )  # (2N, P, D)
    else:
        positive = keys.roll(len(z1), 0).unsqueeze(1)
    ids = (rows(z1) if labels is None else class_ids(labels, z1)).repeat(2)
    return Contrast(keys, positive, keys, ids, ids)


def same_class(z1: Tensor, z2: Tensor, labels: Tensor) -> Contrast:
    """The supervised pairing: the positives of an anchor are all other embeddings of its class, the rest negatives.

    Reproduces AttentionNCE's supervised setting (Liu et al. 2025, section 4.4) and, with InfoNCE,
    supervised contrastive learning with one denominator for each positive.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.
        labels: (N,) classes, from 0.

    >>> contrast = same_class(torch.eye(3), torch.eye(3), torch.tensor([0, 0, 1]))
    >>> contrast.positive.shape, (~contrast.padding).sum(dim=1).tolist()
    (torch.Size([6, 3, 3]), [3, 3, 1, 3, 3, 1])
    """
    same_shape(z1, z2)
    keys, ids = unit(torch.cat([widen(z1), widen(z2)])), class_ids(labels, z1).repeat(2)
    mate = (ids.unsqueeze(1) == ids).fill_diagonal_(False)  # (A, A)
    most = int(mate.sum(dim=1).max())
    found, index = mate.to(torch.uint8).sort(dim=1, descending=True, stable=True)
    padding = found[:, :most] == 0
    positive = keys[index[:, :most]].masked_fill(padding.unsqueeze(2), 0)  # (A, P, D)
    return Contrast(keys, positive, keys, ids, ids, padding=padding)


def other_view(z1: Tensor, z2: Tensor, mean_over_negatives: bool = True) -> Contrast:
    """GraphCL's pairing: the first view's rows are anchors, the second view's other rows their negatives.

    The positive is not in the denominator. ADNCE's graph code takes the mean over the N - 1
    negatives, GraphCL's the sum (`mean_over_negatives=False`); for losses that take the
    denominator's logarithm this is a constant.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.

    >>> other_view(torch.eye(4), torch.eye(4)).positive_in_denominator
    False
    """
    same_shape(z1, z2)
    ids, keys = rows(z1), unit(z2)
    return Contrast(unit(z1), keys.unsqueeze(1), keys, ids, ids, False, mean_over_negatives)


def whole_row(z1: Tensor, z2: Tensor) -> Contrast:
    """SimCSE's pairing: each row of the first view meets the whole second view, its positive included.

    InfoNCE over it is the cross-entropy of the N x N cosine matrix. In ADNCE's sentence code the
    positive is one of the re-weighted columns: nothing is removed from the row, and nothing is
    added to it.

    Args:
        z1, z2: (N, D) embeddings of two views, row i of both from sample i; need not be normalised.

    >>> whole_row(torch.eye(4), torch.eye(4)).key_id.tolist()
    [-1, -1, -1, -1]
    """
    same_shape(z1, z2)
    ids, keys = rows(z1), unit(z2)
    everybody = torch.full_like(ids, -1)
    return Contrast(
        unit(z1), keys.unsqueeze(1), keys, ids, everybody, False, positive_key=ids.unsqueeze(1)
    )


def query_key(queries: Tensor | Sequence[Tensor], keys: Tensor) -> Contrast:
    """MoCo v3's pairing: every crop's query meets the keys of one target view; its own instance is its positive.

    With several target views build one Contrast for each and add their losses (MoCo v3; RényiCL
    with multi-crop).

    Args:
        queries: (N, D), or (C, N, D), or a sequence of C tensors (N, D): the online network's
            crops.
        keys: (N, D) the target network's embeddings of one view; pass them detached for a momentum
            encoder.

    >>> query_key([torch.eye(4), torch.eye(4)], torch.eye(4)).anchor.shape
    torch.Size([8, 4])
    """
    crops = (
        queries if isinstance(queries, Tensor) else torch.stack([widen(crop) for crop in queries])
    )
    crops = crops.unsqueeze(0) if crops.ndim == 2 else crops
    same_shape(*crops, keys)
    key, key_id = unit(keys), rows(keys)
    positive = key.repeat(len(crops), 1).unsqueeze(1)
    return Contrast(unit(crops.flatten(0, 1)), positive, key, key_id.repeat(len(crops)), key_id)


def rows(z: Tensor) -> Tensor:
    """The samples' ids: row numbers."""
    return torch.arange(len(z), device=z.device)


def class_ids(labels: Tensor, z: Tensor) -> Tensor:
    """The classes as ids of samples; -1 is taken: it marks keys that are everybody's negatives."""
    if labels.shape != z.shape[:1] or labels.is_floating_point() or bool((labels < 0).any()):
        raise UserError(f"labels must be {len(z)} whole numbers from 0, one for each sample")
    return labels.to(z.device)


def same_shape(first: Tensor, *others: Tensor) -> None:
    """Raise unless all views are matrices of one shape."""
    for z in (first, *others):
        if z.ndim != 2 or z.shape != first.shape:
            raise UserError(
                f"views must be matrices (N, D) of one shape, got {tuple(first.shape)} and {tuple(z.shape)}"
            )
