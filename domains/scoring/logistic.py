"""scikit-learn's logistic regression, as it is or with its regularisation chosen."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from contrastbench.domains.progress import Progress
from contrastbench.domains.scoring.classifiers import (
    Classifier,
    Labelled,
    accuracy,
    predicted,
    standardiser,
)

MAX_ITERATIONS = 300  # three times scikit-learn's default
C_GRID = tuple(10.0**power for power in range(-5, 3))


def logistic(train: Labelled, validation: Labelled | None = None, seed: int = 0) -> Classifier:
    """Logistic regression (C = 1) on standardised columns."""
    standardise = standardiser(train.x)
    model = LogisticRegression(max_iter=MAX_ITERATIONS)
    with unconverged():
        model.fit(standardise(train.x).cpu().numpy(), train.y.cpu().numpy())
    details = {"iterations": int(model.n_iter_.max()), "max_iterations": MAX_ITERATIONS}
    return Classifier(lambda x: predicted(model, standardise(x)), details)


def regularised(train: Labelled, validation: Labelled | None) -> Classifier:
    """Logistic regression on standardised columns, its C the best on the validation rows.

    Of equals the smallest C, which regularises most; C = 1 where there are no validation rows.
    """
    standardise = standardiser(train.x)
    models = path(Labelled(standardise(train.x), train.y), C_GRID if validation else (1.0,))
    candidates = [
        Classifier(partial(predicted, m), {"C": m.C, "iterations": int(m.n_iter_.max())})
        for m in models
    ]
    best = candidates[0]
    details = best.details
    if validation:
        held_out = Labelled(standardise(validation.x), validation.y)
        scores = [accuracy(candidate, held_out) for candidate in candidates]
        best = candidates[scores.index(max(scores))]
        details = {**best.details, "validation_by_C": scores}
    return Classifier(lambda rows: best.predict(standardise(rows)), details)


def path(train: Labelled, grid: Sequence[float]) -> list[LogisticRegression]:
    """Models by L-BFGS for each C; each starts from the solution of the one before."""
    x, y = train.x.cpu().numpy(), train.y.cpu().numpy()
    model, models = LogisticRegression(max_iter=MAX_ITERATIONS, warm_start=True), []
    with unconverged(), Progress(len(grid), "logistic regression") as progress:
        for c in grid:
            models.append(copy.deepcopy(model.set_params(C=c).fit(x, y)))
            progress.step()
    return models


@contextmanager
def unconverged() -> Iterator[None]:
    """Without a warning where the iterations do not suffice: the record has their number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
