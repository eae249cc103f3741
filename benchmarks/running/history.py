"""The course of a training as plain values: losses, scores on the way, and whether it went well."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from contrastbench.benchmarks.running.devices import Circumstances
from contrastbench.losses.contrast import Contrast

ROWS = 512  # anchors and keys of the last batch that are looked at: a fraction of a second
TIED = 1e-6  # cosines that are as near are equal: float32 rounds by 1e-7


class Diverged(Exception):
    """A loss or a weight is no longer a number.

    Args:
        message: what it is, and when.
        details: the step, and the losses before it, for the record.
    """

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


@dataclass
class History:
    """The course of a training so far, as plain values."""

    step: int = 0
    loss_by_epoch: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # of this epoch's steps
    # step, the domain's validation score
    dev_curve: list[tuple[int, float]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)  # accuracy@100: after 100 epochs
    health: dict[str, float] = field(default_factory=dict)  # of the first and of the last step
    # the steps before which circumstances changed, and to what
    starts: list[tuple[int, Circumstances]] = field(default_factory=list, compare=False)
    seconds: float = field(default=0.0, compare=False)  # that earlier processes trained

    def go_on(self, now: Circumstances) -> bool:
        """Note the circumstances of the next steps; return whether they are unchanged."""
        repeats = now.get("deterministic", True)
        same = not self.starts or (self.starts[-1][1] == now and repeats)
        if not self.starts or not same:
            self.starts.append((self.step, now))
        return same

    @property
    def details(self) -> dict[str, Any]:
        details = {"loss_by_epoch": self.loss_by_epoch, **self.stretches}
        details |= {"health": self.health} if self.health else {}
        if not self.dev_curve:
            return details
        step, score = self.best
        return {**details, "dev_curve": self.dev_curve, "best_step": step, "validation": score}

    @property
    def stretches(self) -> dict[str, Any]:
        """Return the circumstances of a training that changed on the way, or nothing."""
        if len(self.starts) < 2:
            return {}
        ends = [step for step, _ in self.starts[1:]] + [self.step]
        stretches = [
            {"from": start, "to": end, **made_with}
            for (start, made_with), end in zip(self.starts, ends, strict=True)
        ]
        return {"stretches": stretches, "equal_to_uninterrupted": "not promised"}

    @property
    def best(self) -> tuple[int, float]:
        """Return the first of the best steps, and its score."""
        return max(self.dev_curve, key=lambda entry: entry[1])


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
