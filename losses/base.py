"""What to do with scores: the base classes of every loss."""

import inspect
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.utils.checkpoint import checkpoint

from contrastbench.losses.contrast import Contrast
from contrastbench.losses.errors import UserError
from contrastbench.losses.registry import weighted


@dataclass(frozen=True)
class Scores:
    """Cosines of a block of anchors with their positives and with all keys.

    Reduce with its methods: they leave out the keys that are no negatives and the padding among the
    positives.
    """

    pos: Tensor  # (a, P)
    neg: Tensor  # (a, K), -inf where the key is no negative of the anchor
    count: Tensor  # (a, 1) negatives of each anchor
    positive_in_denominator: bool = True
    mean_over_negatives: bool = False
    padding: Tensor | None = None  # (a, P) True where pos is no positive

    @property
    def hole(self) -> Tensor:
        """(a, K) True where the key is no negative of the anchor."""
        return self.neg.isneginf()

    def mean_pos(self, x: Tensor) -> Tensor:
        """Mean over each anchor's positives, (a, P) -> (a,)."""
        if self.padding is None:
            return x.mean(dim=1)
        return x.masked_fill(self.padding, 0).sum(dim=1) / (~self.padding).sum(dim=1)

    def log_mean_pos(self, log_x: Tensor) -> Tensor:
        """Log of the mean over each anchor's positives, (a, P) -> (a, 1)."""
        if self.padding is None:
            return torch.logsumexp(log_x, dim=1, keepdim=True) - math.log(log_x.shape[1])
        total = torch.logsumexp(log_x.masked_fill(self.padding, -math.inf), dim=1, keepdim=True)
        return total - (~self.padding).sum(dim=1, keepdim=True).to(total.dtype).log()

    def mean_neg(self, x: Tensor) -> Tensor:
        """Mean over each anchor's negatives, (a, K) -> (a, 1)."""
        return x.masked_fill(self.hole, 0).sum(dim=1, keepdim=True) / self.count

    def log_mean_neg(self, log_x: Tensor) -> Tensor:
        """Log of the mean over each anchor's negatives, (a, K) with -inf in the holes -> (a, 1)."""
        return torch.logsumexp(log_x, dim=1, keepdim=True) - self.count.log()

    def log_share(self, log_pos: Tensor, log_neg: Tensor) -> Tensor:
        """Log of each positive's share of its denominator; the pairing's two flags live here and nowhere else.

        Args:
            log_pos: (a, P) log of each positive's term.
            log_neg: (a, K) log of each negative's term, -inf where the key is no negative; or (a,
                1) of their sum.

        Returns:
            (a, P) log(pos / (pos + sum neg)), or log(pos / sum neg) without the positive in the
            denominator.
        """
        total = torch.logsumexp(log_neg, dim=1, keepdim=True)
        if self.mean_over_negatives:
            total = total - self.count.log()
        return logsigmoid(log_pos - total) if self.positive_in_denominator else log_pos - total

    def log_denominator(self, log_pos: Tensor, log_neg: Tensor) -> Tensor:
        """Log of what each positive is divided by, (a, P); arguments as in `log_share`."""
        return log_pos - self.log_share(log_pos, log_neg)


class Loss(nn.Module):
    """A scalar of a Contrast. Losses add up and scale: `infonce + 0.5 * dar` is a Loss."""

    ordered = False  # whether the order of the anchors matters

    def __init__(
        self,
    ) -> None:  # without it the signature, which names the parameters, would be nn.Module's
        super().__init__()

    def forward(self, contrast: Contrast) -> Tensor:
        """The loss of one contrast, a scalar."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name in the registry, which is the module's, or the user's own file's."""
        return type(self).__module__.rpartition(".")[2]

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
        flat = [(in_range("weight", w) * v, inner) for w, loss in terms for v, inner in parts(loss)]
        self.weights = [w for w, _ in flat]
        self.losses = nn.ModuleList(loss for _, loss in flat)
        self.ordered = any(loss.ordered for _, loss in flat)

    def forward(self, contrast: Contrast) -> Tensor:
        values = [w * loss(contrast) for w, loss in zip(self.weights, self.losses, strict=True)]
        return torch.stack(values).sum()

    @property
    def name(self) -> str:
        """The expression that `get_loss` takes."""
        return " + ".join(weighted(loss.name, weight) for weight, loss in parts(self))

    @property
    def params(self) -> dict[str, Any]:
        """The arguments of every term, as `term.argument`; the weights are in the name."""
        return {
            f"{loss.name}.{key}": value
            for _, loss in parts(self)
            for key, value in loss.params.items()
        }


def parts(loss: Loss) -> list[tuple[float, Loss]]:
    """The weighted terms of a sum; any other loss is one term of weight 1."""
    return (
        list(zip(loss.weights, cast("list[Loss]", loss.losses), strict=True))
        if isinstance(loss, Sum)
        else [(1.0, loss)]
    )


class ScoreLoss(Loss):
    """A loss that is a formula of scores: subclasses write `terms` in log space and nothing else.

    Rows are taken in blocks that are recomputed in the backward pass, so memory grows with the
    number of keys, not with its square. Scores and reductions run in float32 or better, under
    autocast too.
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
            values = [
                checkpoint(self.block_terms, contrast, rows, use_reentrant=False) for rows in blocks
            ]
            return self.combine(torch.cat(values))

    def block_terms(self, contrast: Contrast, rows: slice) -> Tensor:
        """The terms of some rows of anchors."""
        return self.terms(block_scores(contrast, rows))


def block_scores(contrast: Contrast, rows: slice) -> Scores:
    """Scores of some rows of anchors."""
    same = contrast.anchor_id[rows].unsqueeze(1) == contrast.key_id  # (a, K)
    scores = contrast.anchor[rows] @ contrast.keys.T
    pos = None if contrast.positive_key is None else scores.gather(1, contrast.positive_key[rows])
    return with_positives(
        contrast, rows, scores.masked_fill(same, -math.inf), (~same).sum(dim=1, keepdim=True), pos
    )


def with_positives(
    contrast: Contrast, rows: slice, neg: Tensor, count: Tensor, pos: Tensor | None = None
) -> Scores:
    """The scores of some rows of anchors, from those with their negatives and the (a, 1) number of these.

    Raises:
        ValueError: an anchor has no negative, so no contrastive loss is defined.
    """
    if not bool((count > 0).all()):
        raise UserError(
            "an anchor has no negatives: a contrastive batch needs at least two different samples"
        )
    if pos is None:
        pos = torch.linalg.vecdot(contrast.anchor[rows].unsqueeze(1), contrast.positive[rows])
    padding = None if contrast.padding is None else contrast.padding[rows]
    flags = contrast.positive_in_denominator, contrast.mean_over_negatives
    return Scores(pos, neg, count.to(neg.dtype), *flags, padding)


def in_range(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    closed: bool | str = False,
) -> float:
    """The value if it is a finite number between low and high.

    Args:
        name: what the error calls it.
        value: the candidate.
        low, high: the bounds.
        closed: True if both bounds are allowed values, "low" or "high" if one is.

    >>> in_range("temperature", 0.5, low=0)
    0.5
    >>> in_range("temperature", float("nan"), low=0)
    Traceback (most recent call last):
    contrastbench.losses.errors.UserError: temperature must be a finite number > 0, got nan
    """
    low_sign, high_sign = (
        ">" + "=" * (closed in (True, "low")),
        "<" + "=" * (closed in (True, "high")),
    )
    number = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if number and (
        low < value < high
        or (value == low and "=" in low_sign)
        or (value == high and "=" in high_sign)
    ):
        return float(value)
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in ((low_sign, low), (high_sign, high))
        if math.isfinite(bound)
    ]
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    raise UserError(f"{name} must be {expected}, got {value!r}")


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """The value if it is one of the choices.

    >>> one_of("variant", "paper", ("paper", "official_code"))
    'paper'
    """
    if isinstance(value, str) and value in choices:
        return value
    raise UserError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
