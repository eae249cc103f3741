"""Whether a training went well: the embeddings of its last batch, and its gradients."""

import math

import torch
from torch import Tensor

from contrastbench.losses.contrast import Contrast

ROWS = 512  # anchors and keys of the last batch that are looked at: a fraction of a second
TIED = 1e-6  # cosines that are as near are equal: float32 rounds by 1e-7


@torch.no_grad()
def embedding_health(contrast: Contrast) -> dict[str, float]:
    """Return what the embeddings of a batch look like; nothing where they are not finite.

    `rank` is RankMe (Garrido et al. 2023), the exponential of the entropy of the singular values,
    of `rank_of` at most. `alignment` and `uniformity` are Wang and Isola's (2020). `tied_cosines`
    is the percent of an anchor's negatives whose cosine another one of them has too.
    """
    some = slice(ROWS)
    anchors, keys, positives = (
        rows.detach().cpu().double()
        for rows in (contrast.anchor[some], contrast.keys[some], contrast.positives(some))
    )
    if not all(bool(rows.isfinite().all()) for rows in (anchors, keys, positives)):
        return {}
    near = (anchors.unsqueeze(1) * positives).sum(dim=2)
    if contrast.padding is not None:
        near = near[~contrast.padding[some].cpu()]
    health = {
        "rank": effective_rank(anchors),
        "rank_of": float(min(anchors.shape)),
        "alignment": (2 - 2 * near).mean().item(),
    }
    negative = (contrast.anchor_id[some, None] != contrast.key_id[some]).cpu()
    cosines = anchors @ keys.T
    if bool(negative.any()):
        health["uniformity"] = (4 * (cosines[negative] - 1)).exp().mean().log().item()
        health["tied_cosines"] = 100 * tied(cosines, negative)
    return {name: value for name, value in health.items() if math.isfinite(value)}


def effective_rank(rows: Tensor) -> float:
    """Return the exponential of the entropy of the rows' singular values.

    >>> round(effective_rank(torch.eye(4)), 4), round(effective_rank(torch.ones(4, 3)), 4)
    (4.0, 1.0)
    """
    rows = rows.double()  # the square root of an eigenvalue has half the digits
    square = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    values = torch.linalg.eigvalsh(square).clamp_min(0).sqrt()
    return torch.special.entr(values / values.sum()).sum().exp().item()


def tied(cosines: Tensor, negative: Tensor) -> float:
    """Return the share of negatives whose cosine to their anchor equals that of another one."""
    apart = 2.0 + torch.arange(cosines.shape[1], dtype=cosines.dtype)  # never equal
    equal = cosines.where(negative, apart).sort(dim=1).values.diff(dim=1) <= TIED
    none = equal.new_zeros(len(equal), 1)
    either = torch.cat([none, equal], dim=1) | torch.cat([equal, none], dim=1)
    return (either.sum() / negative.sum()).item()
