"""Stratified folds of an SVM whose C each training part chooses: GraphCL's scorer, and DASL's.

scikit-learn is imported where it scores: its import takes as long as torch's, and `bench check` has
tried every first step by then.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, cpu_count, delayed

from contrastbench.domains.progress import Progress
from contrastbench.errors import UserError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Array = np.ndarray[Any, np.dtype[Any]]
Fold = tuple[float, float, float]  # percent on the test part, the C chosen, percent that chose it
C_GRID = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)
INNER_FOLDS = 5


@dataclass(frozen=True)
class FoldScores:
    """The scores of each held-out fold, in percent, with the C chosen on its training part."""

    accuracy: list[float]
    c: list[float]
    inner: list[float]  # percent, mean over the inner folds of a training part

    @property
    def mean(self) -> float:
        """Return the mean accuracy over the folds."""
        return float(np.mean(self.accuracy))

    @property
    def std(self) -> float:
        """Standard deviation over folds (ddof 0), which says nothing about seeds."""
        return float(np.std(self.accuracy))


def check_folds(y: Array, folds: int, fix: str = "use more data or fewer --recipe folds") -> None:
    """Raise unless each class has enough members for the outer and inner folds."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise UserError("all samples have one class, so nothing can be classified: use other data")
    smallest = f"class {classes[counts.argmin()]} has {counts.min()} members"
    if counts.min() < folds:
        raise UserError(f"{smallest}, fewer than the {folds} folds; {fix}")
    training = counts - np.ceil(counts / folds)
    if training.min() < 2 or training.max() < INNER_FOLDS:
        raise UserError(
            f"{smallest}: {folds} folds leave too few in a training part to choose C by; "
            "use more data"
        )


def svm_folds(x: Array, y: Array, folds: int = 10, seed: int = 0) -> FoldScores:
    """Stratified k-fold accuracy of an RBF SVM whose C is chosen inside each training part.

    GraphCL's protocol: features as they are, gamma 1 / (columns * variance of the training part), C
    in 1e-3..1e3 by the accuracy of an inner stratified 5-fold search, ties to the smaller C. The
    same numbers as scikit-learn's `GridSearchCV(SVC(), {"C": C_GRID}, cv=5)` on the same folds:
    squared distances are computed once for all folds, and each training part's kernel once for all
    C.

    Args:
        x: (n, d) embeddings.
        y: (n,) classes.
        folds: number of outer folds, shuffled by the seed.
        seed: of the shuffle.

    Raises:
        UserError: a class has fewer members than folds, or the embeddings are not finite.

    >>> y = np.repeat([0, 1], 10)
    >>> x = y[:, None] + np.arange(20)[:, None] / 100
    >>> svm_folds(x, y, folds=2).mean
    100.0
    """
    from sklearn.model_selection import StratifiedKFold

    x = checked(x, y, folds)
    distance = squared_distances(x)
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y)
    # libsvm releases the interpreter's lock, so threads fill the cores without copying the
    # distances
    pool = Parallel(n_jobs=cpu_count(), prefer="threads", return_as="generator")
    # a class with fewer members than inner folds is not a fault, see check_folds; filters are the
    # whole process's, and threads that set and reset them each on its own undo one another
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        scored = pool(delayed(svm_fold)(x, y, distance, *split) for split in splits)
        return collected(scored, folds)


def checked(x: Array, y: Array, folds: int) -> Array:
    """The embeddings in float64, if they are finite and the folds have members of each class."""
    check_folds(y, folds)
    x = np.asarray(x, dtype=np.float64)
    if not np.isfinite(x).all():
        raise UserError("embeddings are not finite: the encoder diverged")
    return x


def collected(scored: Iterable[Fold], folds: int) -> FoldScores:
    """Fold by fold as they are scored, with a bar."""
    found = []
    with Progress(folds, "scoring folds") as progress:
        for fold in scored:
            found.append(fold)
            progress.step()
    return FoldScores(*(list(column) for column in zip(*found, strict=True)))


def squared_distances(x: Array) -> Array:
    """(n, n) squared Euclidean distances."""
    square = np.einsum("ij,ij->i", x, x)
    return np.maximum(square[:, None] + square[None, :] - 2 * (x @ x.T), 0)


def svm_fold(x: Array, y: Array, distance: Array, train: Array, test: Array) -> Fold:
    """Score one fold with the C that is best in the training part's own folds.

    Percent there is the mean over the inner folds, and chose C: it says nothing of new samples, but
    knows none of the test part.
    """
    from sklearn.model_selection import StratifiedKFold

    inner = StratifiedKFold(INNER_FOLDS).split(train, y[train])
    parts = ((train[fit], train[held]) for fit, held in inner)
    table = np.array([list(accuracies(x, y, distance, fit, held, C_GRID)) for fit, held in parts])
    inner_accuracy = table.mean(axis=0)
    c = C_GRID[int(inner_accuracy.argmax())]
    (accuracy,) = accuracies(x, y, distance, train, test, [c])
    return 100 * accuracy, c, 100 * float(inner_accuracy.max())


def accuracies(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Any
) -> Iterator[float]:
    """Share of the test part that an SVM fitted on the training part gets right, for each C."""
    from sklearn.svm import SVC

    gamma = 1 / (x.shape[1] * x[train].var()) if x[train].var() > 0 else 1.0
    fit_kernel = np.exp(-gamma * distance[np.ix_(train, train)])
    test_kernel = np.exp(-gamma * distance[np.ix_(test, train)])
    for c in grid:
        model = SVC(C=c, kernel="precomputed").fit(fit_kernel, y[train])
        yield float(np.mean(model.predict(test_kernel) == y[test]))


def linear_folds(x: Array, y: Array, folds: int = 10, seed: int = 0) -> FoldScores:
    """Stratified k-fold accuracy of a linear SVM whose C the fold after the tested one chooses.

    DASL's scorer (Chen et al. 2024, A.2): eight tenths fit, one chooses, one is tested. Columns are
    standardised by the part that fits, which is not printed: else sums over thousands of nodes make
    the largest graph the only one that counts. Ties go to the smaller C.

    Args:
        x: (n, d) embeddings.
        y: (n,) classes.
        folds: three or more, shuffled by the seed.
        seed: of the shuffle and of the solver.

    Raises:
        UserError: a class has fewer members than folds, or the embeddings are not finite.

    >>> y = np.repeat([0, 1], 10)
    >>> x = y[:, None] + np.arange(20)[:, None] / 100
    >>> linear_folds(x, y, folds=5).mean
    100.0
    """
    from sklearn.model_selection import StratifiedKFold

    from contrastbench.domains.scoring.logistic import unconverged

    x = checked(x, y, folds)
    parts = [t for _, t in StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y)]
    following = [*parts[1:], parts[0]]
    with unconverged():
        pairs = zip(following, parts, strict=True)
        return collected((linear_fold(x, y, *pair, seed) for pair in pairs), folds)


def linear_fold(x: Array, y: Array, validation: Array, test: Array, seed: int) -> Fold:
    """Score one fold with the C that is best on the validation part."""
    fit = np.setdiff1d(np.arange(len(y)), [*test, *validation])
    models = [linear_svm(c, seed).fit(x[fit], y[fit]) for c in C_GRID]
    chosen = [model.score(x[validation], y[validation]) for model in models]
    best = int(np.argmax(chosen))
    accuracy = models[best].score(x[test], y[test])
    return 100 * accuracy, C_GRID[best], 100 * chosen[best]


def linear_svm(c: float, seed: int) -> "Pipeline":
    """Make a linear SVM on standardised columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    return make_pipeline(StandardScaler(), LinearSVC(C=c, random_state=seed))
