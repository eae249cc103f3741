"""Rows with classes, what a fitted classifier is, and what classifiers have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

STD_ROUNDING = 1e-5  # of float32, relative to a column's mean


class Labelled(NamedTuple):
    """Rows with their classes."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,) classes 0, 1, ...

    def to(self, device: torch.device) -> "Labelled":
        """The same rows on a device."""
        return Labelled(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Classifier:
    """A classifier that has been fitted."""

    predict: Callable[[Tensor], Tensor]  # (n, d) -> (n,)
    details: dict[str, Any] = field(default_factory=dict)  # what was chosen, for the record
    # (n, d) -> (n, classes) the larger the likelier, of those that have such scores
    scores: Callable[[Tensor], Tensor] | None = None


def accuracy(classifier: Classifier, rows: Labelled) -> float:
    """Percent of rows whose class is predicted."""
    return 100 * (classifier.predict(rows.x) == rows.y).double().mean().item()


def accuracy_within(classifier: Classifier, rows: Labelled, first: int) -> float:
    """Percent of rows whose class is among the first that the classifier's scores name."""
    assert classifier.scores is not None, "asked of classifiers that have scores"
    scores = classifier.scores(rows.x)
    likeliest = scores.topk(min(first, scores.shape[1])).indices
    return 100 * (likeliest == rows.y.unsqueeze(1)).any(dim=1).double().mean().item()


def standardiser(x: Tensor) -> Callable[[Tensor], Tensor]:
    """Scales columns to these rows' mean 0 and variance 1; constant columns become 0."""
    std, mean = torch.std_mean(x, dim=0, correction=0)
    inverse = torch.where(std > STD_ROUNDING * mean.abs(), 1 / std, 0)
    return lambda rows: (rows - mean) * inverse


def predicted(model: Any, x: Tensor) -> Tensor:
    """A scikit-learn model's classes of these rows."""
    return torch.from_numpy(model.predict(x.cpu().numpy())).to(x.device)
