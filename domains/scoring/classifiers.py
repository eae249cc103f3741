"""What a fitted classifier is, what classifiers have in common, and nearest neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from contrastbench.domains.scoring.metrics import class_metrics
from contrastbench.losses.contrast import unit

STD_ROUNDING = 1e-5  # of float32, relative to a column's mean
NEIGHBOUR_BLOCK = 1024  # whose neighbours are looked for at once


class Labelled(NamedTuple):
    """Rows with their classes."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,) classes 0, 1, ...

    def to(self, device: torch.device) -> "Labelled":
        return Labelled(self.x.to(device), self.y.to(device))


def joined_rows(*parts: Labelled) -> Labelled:
    return Labelled(*map(torch.cat, zip(*parts, strict=True)))


@dataclass(frozen=True)
class Classifier:
    """A classifier that has been fitted."""

    scores: Callable[[Tensor], Tensor]  # (n, d) -> (n, classes) the larger the likelier
    details: dict[str, Any] = field(default_factory=dict)  # what was chosen, for the record


def percent(x: Tensor) -> float:
    return 100 * x.double().mean().item()


def accuracy(classifier: Classifier, rows: Labelled) -> float:
    """Percent of rows whose class is predicted."""
    return accuracy_of(classifier.scores(rows.x), rows.y)


def accuracy_of(scores: Tensor, y: Tensor) -> float:
    """Percent of rows whose class has the largest score."""
    return percent(scores.argmax(dim=1) == y)


def accuracy_within(scores: Tensor, y: Tensor, first: int) -> float:
    """Percent of rows whose class is among the first by score."""
    likeliest = scores.topk(min(first, scores.shape[1])).indices
    return percent((likeliest == y.unsqueeze(1)).any(dim=1))


def beside_accuracy(scores: Tensor, y: Tensor) -> dict[str, float]:
    """Return what accuracy hides where classes are skewed, in percent: see `class_metrics`."""
    predicted = scores.argmax(dim=1)
    return class_metrics(*(values.detach().cpu().numpy() for values in (y, predicted, scores)))


def standardiser(x: Tensor) -> Callable[[Tensor], Tensor]:
    """Scales columns to these rows' mean 0 and variance 1; constant columns become 0."""
    std, mean = torch.std_mean(x, dim=0, correction=0)
    inverse = torch.where(std > STD_ROUNDING * mean.abs(), 1 / std, 0)
    return lambda rows: (rows - mean) * inverse


def decisions(model: Any, x: Tensor) -> Tensor:
    """(n, classes) a scikit-learn model's scores; a class that it has not seen is never likely."""
    values = torch.from_numpy(model.decision_function(x.cpu().numpy()))
    if values.ndim == 1:  # of the second of two alone
        values = torch.stack([-values, values], dim=1)
    scores = values.new_full((len(values), int(model.classes_[-1]) + 1), -torch.inf)
    scores[:, torch.from_numpy(model.classes_)] = values
    return scores.to(x.device)


def neighbours(train: Labelled, k: int, temperature: float) -> Classifier:
    """Weighted k nearest neighbours by cosine s (Wu et al. 2018), k at most all rows.

    A neighbour votes with the weight exp(s / temperature), relative to that of the nearest one, so
    that no temperature is too small.
    """
    k, keys, classes = min(k, len(train.y)), unit(train.x), int(train.y.max()) + 1

    def votes(rows: Tensor) -> Tensor:
        cosine, nearest = (unit(rows) @ keys.T).topk(k)  # (n, k), the largest first
        total = cosine.new_zeros(len(rows), classes)
        weight = ((cosine - cosine[:, :1]) / temperature).exp()
        return total.scatter_add_(1, train.y[nearest], weight)

    return Classifier(lambda x: torch.cat([votes(z) for z in x.split(NEIGHBOUR_BLOCK)]), {"k": k})
