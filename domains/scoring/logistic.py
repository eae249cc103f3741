"""scikit-learn's logistic regression, as it is or tuned, and VOC's average precision."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from contrastbench.domains.progress import tracked
from contrastbench.domains.scoring import classifiers
from contrastbench.domains.scoring.classifiers import Classifier, Labelled, decisions, standardiser

MAX_ITERATIONS = 300  # three times scikit-learn's default
TRANSFER_GRID = tuple(10 ** (-6 + 11 * k / 44) for k in range(45))
TRANSFER_ITERATIONS = 5000
C_GRID = tuple(10.0**power for power in range(-5, 3))
LEVELS = 11  # of recall: 0, 0.1, ..., 1


def logistic(train: Labelled, validation: Labelled | None = None, seed: int = 0) -> Classifier:
    """Logistic regression (C = 1) on standardised columns."""
    standardise = standardiser(train.x)
    model = LogisticRegression(max_iter=MAX_ITERATIONS)
    with unconverged():
        model.fit(standardise(train.x).cpu().numpy(), train.y.cpu().numpy())
    details = {"iterations": int(model.n_iter_.max()), "max_iterations": MAX_ITERATIONS}
    return Classifier(lambda x: decisions(model, standardise(x)), details)


def regularised(
    train: Labelled, validation: Labelled | None, grid: Sequence[float] = C_GRID
) -> Classifier:
    """Logistic regression on standardised columns, its C the best on the validation rows.

    Of equals the smallest C, which regularises most. Without validation rows it is the only one of
    the grid, or 1.
    """
    standardise = standardiser(train.x)
    models = regularisation_path(
        Labelled(standardise(train.x), train.y), grid if validation or len(grid) == 1 else (1.0,)
    )
    best, chosen_by = models[0], {}
    if validation:
        held_out = Labelled(standardise(validation.x), validation.y)
        scores = [classifiers.accuracy(Classifier(partial(decisions, m)), held_out) for m in models]
        best, chosen_by = models[scores.index(max(scores))], {"validation_by_C": scores}
    details = {"C": best.C, "iterations": int(best.n_iter_.max()), **chosen_by}
    return Classifier(lambda rows: decisions(best, standardise(rows)), details)


def transfer_accuracies(
    train: Labelled, validation: Labelled, test: Labelled, metric: str = "per_class_accuracy"
) -> dict[str, float]:
    """Accuracy and mean per-class accuracy in percent of RényiCL's transfer (Lee and Shin, B).

    One of 45 C from 1e-6 to 1e5 that is best on the validation rows by the metric, the smallest of
    equals; then fitted again with these rows. 5,000 iterations of L-BFGS at most, each fit from the
    solution of the one before; columns as they are.
    """
    models = regularisation_path(train, TRANSFER_GRID, TRANSFER_ITERATIONS)
    chosen_by = ACCURACIES[metric]
    scores = [chosen_by(decisions(m, validation.x).argmax(dim=1), validation.y) for m in models]
    best = models[scores.index(max(scores))]
    both = classifiers.joined_rows(train, validation)
    with unconverged():
        best.fit(both.x.cpu().numpy(), both.y.cpu().numpy())
    predicted = decisions(best, test.x).argmax(dim=1)
    return {**{name: of(predicted, test.y) for name, of in ACCURACIES.items()}, "C": best.C}


def per_class(predicted: Tensor, truth: Tensor) -> float:
    """Percent of each class's rows that are found, in the mean over classes."""
    right = (predicted == truth).double()
    shares = [right[truth == label].mean() for label in truth.unique()]
    return classifiers.percent(torch.stack(shares))


ACCURACIES = {
    "accuracy": lambda predicted, truth: classifiers.percent(predicted == truth),
    "per_class_accuracy": per_class,
}


def regularisation_path(
    train: Labelled, grid: Sequence[float], iterations: int = MAX_ITERATIONS
) -> list[LogisticRegression]:
    """Models by L-BFGS for each C; each starts from the solution of the one before."""
    x, y = train.x.cpu().numpy(), train.y.cpu().numpy()
    model, models = LogisticRegression(max_iter=iterations, warm_start=True), []
    with unconverged():
        for c in tracked(grid, "logistic regression"):
            models.append(copy.deepcopy(model.set_params(C=c).fit(x, y)))
    return models


@contextmanager
def unconverged() -> Iterator[None]:
    """Silence the warning about too few iterations, whose number the record has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def eleven_point_precision(scores: Tensor, y: Tensor) -> float:
    r"""VOC2007's 11-point average precision of one class, in percent.

    .. math:: \frac{1}{11} \sum_{r \in \{0, 0.1, \ldots, 1\}} \max_{k : R_k \ge r} P_k

    Everingham et al., "The PASCAL Visual Object Classes Challenge 2007", section 3.4.1: P_k and R_k
    are precision and recall of the k images with the largest scores. Images marked 0 are neither
    right nor wrong. Of equal scores the first image comes first.

    Args:
        scores: (n,) the larger, the more an image is of the class.
        y: (n,) 1 of the class, -1 not, 0 hard to say; one image at least is of the class.

    >>> eleven_point_precision(torch.tensor([0.9, 0.8, 0.7]), torch.tensor([1, -1, 1]))
    84.84848484848484
    """
    said = y != 0
    right = y[said][scores[said].argsort(descending=True, stable=True)] > 0
    hits, levels = right.cumsum(0), torch.arange(LEVELS, device=y.device)[:, None]
    precision = hits.double() / torch.arange(1, len(hits) + 1, device=y.device)
    # whole numbers: a recall of 3/10 is not below 0.3
    reached = (LEVELS - 1) * hits >= levels * hits[-1]
    return classifiers.percent(precision.where(reached, 0).amax(dim=1))


def transfer_multi_label(train: Labelled, validation: Labelled, test: Labelled) -> dict[str, float]:
    """Mean over classes of VOC2007's average precision, in percent, as RényiCL transfers.

    Lee and Shin 2022, appendix B: L-BFGS, one of 45 C for all classes that is best on the
    validation rows, the smallest of equals; fitted again with these rows. Open there, and ours: a
    logistic regression for each class against the rest, without the rows that are marked 0 for it.
    """
    classes = train.y.shape[1]
    paths = [
        regularisation_path(of_class(train, c), TRANSFER_GRID, TRANSFER_ITERATIONS)
        for c in range(classes)
    ]
    scores = [mean_average_precision(models, validation) for models in zip(*paths, strict=True)]
    best = scores.index(max(scores))
    both = classifiers.joined_rows(train, validation)
    models = [path[best] for path in paths]
    for c, model in enumerate(models):
        x, y = of_class(both, c)
        with unconverged():
            model.fit(x.cpu().numpy(), y.cpu().numpy())
    return {"mean_average_precision": mean_average_precision(models, test), "C": models[0].C}


def of_class(rows: Labelled, c: int) -> Labelled:
    said = rows.y[:, c] != 0
    return Labelled(rows.x[said], rows.y[said, c])


def mean_average_precision(models: Sequence[LogisticRegression], rows: Labelled) -> float:
    x = rows.x.cpu().numpy()
    precisions = [
        eleven_point_precision(torch.from_numpy(model.decision_function(x)), rows.y[:, c].cpu())
        for c, model in enumerate(models)
    ]
    return sum(precisions) / len(precisions)
