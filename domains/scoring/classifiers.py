"""Classifiers on frozen embeddings, fitted on training rows; what is chosen is chosen on validation rows."""

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from contrastbench.domains.base import generator
from contrastbench.domains.progress import Progress
from contrastbench.losses.contrast import unit

RATES = (1.0, 3.0, 5.0)
EPOCHS = 100
BATCH = 256
MEAN_SQUARE = 16  # of rows: at 1 the largest of the rates always won and was still too small, at 16 each wins at times
ROUNDING = 1e-5  # of float32, relative to a column's mean
MAX_ITERATIONS = 300  # of the logistic regression
C_GRID = tuple(10.0**power for power in range(-5, 3))  # of the regularised one
ROWS = 1024  # whose neighbours are looked for at once


class Labelled(NamedTuple):
    """Rows with their classes."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,) classes 0, 1, ...

    def to(self, device: torch.device) -> "Labelled":
        """The same rows on a device."""
        return Labelled(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Classifier:
    """A fitted classifier."""

    predict: Callable[[Tensor], Tensor]  # (n, d) -> (n,)
    details: dict[str, Any] = field(default_factory=dict)  # what was chosen, for the record


def accuracy(classifier: Classifier, rows: Labelled) -> float:
    """Percent of rows whose class is predicted."""
    return 100 * (classifier.predict(rows.x) == rows.y).double().mean().item()


def standardiser(x: Tensor) -> Callable[[Tensor], Tensor]:
    """Scales columns to mean 0 and variance 1 of these rows; columns constant up to rounding become 0."""
    std, mean = torch.std_mean(x, dim=0, correction=0)
    inverse = torch.where(std > ROUNDING * mean.abs(), 1 / std, 0)
    return lambda rows: (rows - mean) * inverse


def linear(train: Labelled, validation: Labelled, seed: int = 0) -> Classifier:
    """Softmax regression by SGD for 100 epochs, momentum 0.9, cosine schedule, the learning rate one of 1, 3, 5.

    RényiCL's probe; the rate is the one that is best on the validation rows, the smallest of
    equals. Columns are standardised and then scaled by one number, so that these rates suit
    embeddings of any size and width. Batches of 256, weights from zero, rows shuffled by the seed.
    """
    standardise, share = standardiser(train.x), math.sqrt(MEAN_SQUARE / train.x.shape[1])
    heads = train_heads(Labelled(standardise(train.x) * share, train.y), seed)

    def classifier(head: nn.Linear) -> Classifier:
        return Classifier(lambda x: head(standardise(x) * share).argmax(dim=1))

    candidates = [classifier(head) for head in heads]
    scores = [accuracy(candidate, validation) for candidate in candidates]
    best = scores.index(max(scores))
    return Classifier(candidates[best].predict, {"lr": RATES[best], "validation_by_lr": scores})


@torch.enable_grad()
def train_heads(train: Labelled, seed: int) -> list[nn.Linear]:
    """One linear layer for each learning rate, all trained on the same batches."""
    columns, classes = train.x.shape[1], int(train.y.max()) + 1
    heads = [nn.Linear(columns, classes, device=train.x.device) for _ in RATES]
    for parameter in (p for head in heads for p in head.parameters()):
        nn.init.zeros_(parameter)
    groups = [
        {"params": head.parameters(), "lr": rate} for head, rate in zip(heads, RATES, strict=True)
    ]
    optimizer = torch.optim.SGD(groups, momentum=0.9, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, EPOCHS * math.ceil(len(train.y) / BATCH)
    )
    with Progress(EPOCHS, "linear classifier") as progress:
        for epoch in range(EPOCHS):
            rng = generator(train.x.device, seed, epoch)
            order = torch.randperm(len(train.y), generator=rng, device=train.x.device)
            for rows in order.split(BATCH):
                x, y = train.x[rows], train.y[rows]
                optimizer.zero_grad()
                torch.stack([cross_entropy(head(x), y) for head in heads]).sum().backward()
                optimizer.step()
                schedule.step()
            progress.step()
    return [head.requires_grad_(False) for head in heads]


def pseudo_inverse(
    train: Labelled, validation: Labelled | None = None, seed: int = 0
) -> Classifier:
    """Linear regression on one-hot classes by the pseudo-inverse of the features; RényiCL's probe for Higgs.

    By the normal equations in float64: the matrix to invert is as large as a row, not as the table.
    """
    standardise = standardiser(train.x.double())
    x = standardise(train.x.double())
    targets = one_hot(train.y).double()
    weight = torch.linalg.pinv(x.T @ x, hermitian=True) @ (x.T @ targets)
    bias = targets.mean(dim=0)
    return Classifier(lambda rows: (standardise(rows.double()) @ weight + bias).argmax(dim=1))


def logistic(train: Labelled, validation: Labelled | None = None, seed: int = 0) -> Classifier:
    """scikit-learn's logistic regression (C = 1) on standardised columns."""
    standardise = standardiser(train.x)
    model = LogisticRegression(max_iter=MAX_ITERATIONS)
    with warnings.catch_warnings():  # the record says how many iterations it took
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(standardise(train.x).cpu().numpy(), train.y.cpu().numpy())
    details = {"iterations": int(model.n_iter_.max()), "max_iterations": MAX_ITERATIONS}
    return Classifier(lambda x: predicted(model, standardise(x)), details)


def regularised(train: Labelled, validation: Labelled | None, seed: int = 0) -> Classifier:
    """Multinomial logistic regression by L-BFGS on standardised columns, its C the best on the validation rows.

    Of equals the smallest C, which regularises most; C = 1 where there are no validation rows. Each
    C starts from the solution of the one before.
    """
    standardise = standardiser(train.x)
    x, y = standardise(train.x).cpu().numpy(), train.y.cpu().numpy()
    model = LogisticRegression(max_iter=MAX_ITERATIONS, warm_start=True)
    candidates = []
    with warnings.catch_warnings(), Progress(len(C_GRID), "logistic regression") as progress:
        warnings.simplefilter("ignore", ConvergenceWarning)
        for c in C_GRID if validation else (1.0,):
            fitted = copy.deepcopy(model.set_params(C=c).fit(x, y))
            candidates.append(
                Classifier(
                    partial(predicted, fitted), {"C": c, "iterations": int(fitted.n_iter_.max())}
                )
            )
            progress.step()
    scores = (
        [accuracy(c, Labelled(standardise(validation.x), validation.y)) for c in candidates]
        if validation
        else [0.0]
    )
    best = candidates[scores.index(max(scores))]
    details = {**best.details, "validation_by_C": scores} if validation else best.details
    return Classifier(lambda rows: best.predict(standardise(rows)), details)


def neighbours(train: Labelled, k: int, temperature: float) -> Classifier:
    """Weighted k nearest neighbours by cosine s, each with weight exp(s / temperature) (Wu et al. 2018); k <= rows.

    Weights are relative to that of the nearest one, so that no temperature is too small for them.
    """
    k, keys, classes = min(k, len(train.y)), unit(train.x), int(train.y.max()) + 1

    def votes(rows: Tensor) -> Tensor:
        cosine, found = (unit(rows) @ keys.T).topk(k)  # (n, k), the largest first
        total = cosine.new_zeros(len(rows), classes)
        return total.scatter_add_(1, train.y[found], ((cosine - cosine[:, :1]) / temperature).exp())

    return Classifier(
        lambda x: torch.cat([votes(rows).argmax(dim=1) for rows in x.split(ROWS)]), {"k": k}
    )


def boosting(train: Labelled, validation: Labelled | None = None, seed: int = 0) -> Classifier:
    """scikit-learn's histogram gradient boosting with its defaults."""
    model = HistGradientBoostingClassifier(random_state=seed).fit(
        train.x.cpu().numpy(), train.y.cpu().numpy()
    )
    return Classifier(lambda x: predicted(model, x))


def predicted(model: Any, x: Tensor) -> Tensor:
    """A scikit-learn model's classes of these rows."""
    return torch.from_numpy(model.predict(x.cpu().numpy())).to(x.device)


CLASSIFIERS: dict[str, Callable[[Labelled, Labelled, int], Classifier]] = {
    "linear": linear,
    "pseudo_inverse": pseudo_inverse,
    "logistic": logistic,
    "boosting": boosting,
}
