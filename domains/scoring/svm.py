"""Stratified folds of an SVM whose C each training part chooses: GraphCL's scorer, and DASL's.

scikit-learn is imported where it scores: its import takes as long as torch's, and `bench check` has
tried every first step by then. The problems of an SVM are solved by `smo`, whose numbers are
scikit-learn's.
"""

import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
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
# samples: libsvm solves fewer in less time than it takes to load the compiled solver
MIN_COMPILED_SAMPLES = 500
KERNEL_ROWS = 8  # of a kernel that are computed at once


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
    x = checked_embeddings(x, y, folds)
    distance, splits = squared_distances(x), fold_draws(y, folds, seed)
    # libsvm releases the interpreter's lock, so threads fill the cores without copying the
    # distances
    pool = Parallel(n_jobs=cpu_count(), prefer="threads", return_as="generator")
    # a class with fewer members than inner folds is not a fault, see check_folds; filters are the
    # whole process's, and threads that set and reset them each on its own undo one another
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        scored = pool(delayed(svm_fold)(x, y, distance, *split) for split in splits)
        return collected_folds(scored, folds)


def fold_draws(y: Array, folds: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers of each fold's training and test samples."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y)


def checked_embeddings(x: Array, y: Array, folds: int) -> Array:
    """The embeddings in float64, if they are finite and the folds have members of each class."""
    check_folds(y, folds)
    x = np.asarray(x, dtype=np.float64)
    if not np.isfinite(x).all():
        raise UserError("embeddings are not finite: the encoder diverged")
    return x


def collected_folds(scored: Iterable[Fold], folds: int) -> FoldScores:
    """Collect the folds' scores, with a bar of progress."""
    found = []
    with Progress(folds, "scoring folds") as progress:
        for fold in scored:
            found.append(fold)
            progress.step()
    return FoldScores(*(list(column) for column in zip(*found, strict=True)))


def squared_distances(x: Array) -> Array:
    """(n, n) squared Euclidean distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.einsum("ij,ij->i", x, x)
        distance = np.maximum(square[:, None] + square[None, :] - 2 * (x @ x.T), 0)
    if not np.isfinite(distance).all():
        raise UserError("embeddings are too large to square: scale them")
    return distance


def svm_fold(x: Array, y: Array, distance: Array, train: Array, test: Array) -> Fold:
    """Score one fold with the C that is best in the training part's own folds.

    The last number is the mean accuracy over the inner folds, in percent. It chose C, so it is no
    estimate for new samples; it has not seen the test part.
    """
    from sklearn.model_selection import StratifiedKFold

    inner = StratifiedKFold(INNER_FOLDS).split(train, y[train])
    parts = ((train[fit], train[held]) for fit, held in inner)
    table = np.array([svm_accuracies(x, y, distance, fit, held, C_GRID) for fit, held in parts])
    inner_accuracy = table.mean(axis=0)
    c = C_GRID[int(inner_accuracy.argmax())]
    (accuracy,) = svm_accuracies(x, y, distance, train, test, [c])
    return 100 * accuracy, c, 100 * float(inner_accuracy.max())


def svm_accuracies(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Sequence[float]
) -> Array:
    """Share of the test part that an SVM fitted on the training part gets right, for each C."""
    return (predictions(x, y, distance, train, test, grid) == y[test]).mean(axis=1)


def predictions(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Sequence[float]
) -> Array:
    """(grid, tests) the class that an SVM fitted on the training part gives, for each C."""
    solve = compiled_solver() if len(y) >= MIN_COMPILED_SAMPLES else None
    if solve is None:
        return by_libsvm(x, y, distance, train, test, grid)
    gamma = gamma_of(x[train])
    classes, own, counts = np.unique(y[train], return_inverse=True, return_counts=True)
    fit = train[own.argsort(kind="stable")]
    own_kernel = kernel(distance, gamma, fit, fit, np.float32)
    square = np.exp(-gamma * distance[fit, fit])
    test_kernel = kernel(distance, gamma, fit, test, np.float64)
    ends = np.concatenate([[0], counts.cumsum()])
    return classes[solve(own_kernel, square, test_kernel, ends, np.array(grid, float))]


def by_libsvm(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Sequence[float]
) -> Array:
    """(grid, tests) the same by scikit-learn."""
    from sklearn.svm import SVC

    gamma = gamma_of(x[train])
    fit_kernel = kernel(distance, gamma, train, train, np.float64)
    test_kernel = kernel(distance, gamma, test, train, np.float64)
    models = (SVC(C=c, kernel="precomputed").fit(fit_kernel, y[train]) for c in grid)
    return np.array([model.predict(test_kernel) for model in models])


def gamma_of(x: Array) -> float:
    """Return scikit-learn's default gamma for the rows that fit."""
    return 1 / (x.shape[1] * x.var()) if x.var() > 0 else 1.0


def kernel(distance: Array, gamma: float, rows: Array, columns: Array, kind: Any) -> Array:
    """Return the kernel of some rows and columns, computed by a few rows, which a cache holds."""
    found = np.empty((len(rows), len(columns)), kind)
    for first in range(0, len(rows), KERNEL_ROWS):
        some = distance.take(rows[first : first + KERNEL_ROWS], 0).take(columns, 1)
        some *= -gamma
        found[first : first + KERNEL_ROWS] = np.exp(some, out=some)
    return found


@cache
def compiled_solver() -> Callable[..., Array] | None:
    """Return the compiled solver where its steps are libsvm's.

    On other processors than x86-64, compilers join libsvm's products and sums, which rounds once.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        from contrastbench.domains.scoring.smo import voted_classes
    except ImportError:  # numba is missing, or too old for this numpy
        return None
    return voted_classes


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
    from contrastbench.domains.scoring.logistic import unconverged

    x = checked_embeddings(x, y, folds)
    parts = [test for _, test in fold_draws(y, folds, seed)]
    following = [*parts[1:], parts[0]]
    with unconverged():
        pairs = zip(following, parts, strict=True)
        return collected_folds((linear_fold(x, y, *pair, seed) for pair in pairs), folds)


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
