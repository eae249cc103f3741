"""What to do with scores: the base classes of every loss."""

import inspect
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from contrastbench.losses.contrast import Contrast
from contrastbench.losses.errors import UserError


@dataclass(frozen=True)
class Scores:
    """Cosines of a block of anchors with their positives and with all keys."""

    pos: Tensor  # (a, P)
    neg: Tensor  # (a, K), -inf where the key is no negative of the anchor
    count: Tensor  # (a, 1) negatives of each anchor
    positive_in_denominator: bool = True
    mean_over_negatives: bool = False

    def log_denominator(self, log_pos: Tensor, log_neg: Tensor) -> Tensor:
        """Log of what each positive is divided by; the pairing's two flags live here and nowhere else.

        Args:
            log_pos: (a, P) log of each positive's term.
            log_neg: (a, K) log of each negative's term, -inf where the key is no negative.

        Returns:
            (a, P) with the positive in the denominator, else (a, 1).
        """
        total = torch.logsumexp(log_neg, dim=1, keepdim=True)
        if self.mean_over_negatives:
            total = total - self.count.log()
        return torch.logaddexp(log_pos, total) if self.positive_in_denominator else total


class Loss(nn.Module):
    """A scalar of a Contrast. Losses add up and scale: `infonce + 0.5 * dar` is a Loss."""

    def forward(self, contrast: Contrast) -> Tensor:
        """The loss of one contrast, a scalar."""
        raise NotImplementedError

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments by name; each is kept as an attribute of the same name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def extra_repr(self) -> str:
        """Shown inside the brackets of repr()."""
        return ", ".join(f"{name}={value!r}" for name, value in self.params.items())

    def __add__(self, other: "Loss") -> "Loss":
        return Sum((1.0, self), (1.0, other))

    def __rmul__(self, weight: float) -> "Loss":
        return Sum((weight, self))


class Sum(Loss):
    """A weighted sum of losses on the same contrast."""

    def __init__(self, *terms: tuple[float, Loss]) -> None:
        super().__init__()
        flat = [(w * v, inner) for w, loss in terms for v, inner in parts(loss)]
        self.weights = [w for w, _ in flat]
        self.losses = nn.ModuleList(loss for _, loss in flat)

    def forward(self, contrast: Contrast) -> Tensor:
        values = [w * loss(contrast) for w, loss in zip(self.weights, self.losses, strict=True)]
        return torch.stack(values).sum()

    @property
    def params(self) -> dict[str, Any]:
        """Weight and arguments of each term, by its place in the sum."""
        terms = zip(self.weights, self.losses, strict=True)
        return {f"{i}.{type(loss).__name__}": {"weight": w, **loss.params} for i, (w, loss) in enumerate(terms)}


def parts(loss: Loss) -> list[tuple[float, Loss]]:
    """The weighted terms of a sum; any other loss is one term of weight 1."""
    return list(zip(loss.weights, loss.losses, strict=True)) if isinstance(loss, Sum) else [(1.0, loss)]


class ScoreLoss(Loss):
    """A loss that is a formula of scores: subclasses write `terms` in log space and nothing else.

    Rows are taken in blocks that are recomputed in the backward pass, so memory grows with the number of keys, not
    with its square. Scores and reductions run in float32 or better, under autocast too.
    """

    block_elements = 2**22  # scores held at once; 16 MiB in float32

    def terms(self, scores: Scores) -> Tensor:
        """The paper's formula: (a,) or (a, k) terms of a block of anchors."""
        raise NotImplementedError

    def combine(self, terms: Tensor) -> Tensor:
        """One scalar of all anchors' terms; the mean unless the loss is a function of the whole batch."""
        return terms.mean()

    def forward(self, contrast: Contrast) -> Tensor:
        step = max(1, self.block_elements // max(1, len(contrast.keys)))
        blocks = [slice(start, start + step) for start in range(0, len(contrast.anchor), step)]
        with torch.autocast(contrast.anchor.device.type, enabled=False):
            if len(blocks) == 1:
                return self.combine(self.block_terms(contrast, blocks[0]))
            values = [checkpoint(self.block_terms, contrast, rows, use_reentrant=False) for rows in blocks]
            return self.combine(torch.cat(values))

    def block_terms(self, contrast: Contrast, rows: slice) -> Tensor:
        """The terms of some rows of anchors."""
        return self.terms(block_scores(contrast, rows))


def block_scores(contrast: Contrast, rows: slice) -> Scores:
    """Scores of some rows of anchors.

    Raises:
        ValueError: an anchor has no negative, so no contrastive loss is defined.
    """
    anchor = contrast.anchor[rows]
    pos = torch.einsum("ad,apd->ap", anchor, contrast.positive[rows])
    same = contrast.anchor_id[rows].unsqueeze(1) == contrast.key_id  # (a, K)
    neg = (anchor @ contrast.keys.T).masked_fill(same, -math.inf)
    count = (~same).sum(dim=1, keepdim=True).to(neg.dtype)
    if not bool((count > 0).all()):
        raise UserError("an anchor has no negatives: a contrastive batch needs at least two different samples")
    return Scores(pos, neg, count, contrast.positive_in_denominator, contrast.mean_over_negatives)


def in_range(name: str, value: Any, low: float = -math.inf, high: float = math.inf, closed: bool = False) -> float:
    """The value if it is a finite number between low and high (bounds included if closed).

    >>> in_range("temperature", 0.5, low=0)
    0.5
    >>> in_range("temperature", float("nan"), low=0)
    Traceback (most recent call last):
    contrastbench.losses.errors.UserError: temperature must be a finite number > 0, got nan
    """
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if number and (low <= value <= high if closed else low < value < high):
        return float(value)
    equal = "=" if closed else ""
    bounds = [f"{sign}{equal} {bound:g}" for sign, bound in ((">", low), ("<", high)) if math.isfinite(bound)]
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    raise UserError(f"{name} must be {expected}, got {value!r}")


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """The value if it is one of the choices.

    >>> one_of("variant", "paper", ("paper", "official_code"))
    'paper'
    """
    if value in choices:
        return value
    raise UserError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
