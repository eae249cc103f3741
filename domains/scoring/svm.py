"""Stratified folds of an SVM whose C each training part chooses: GraphCL's scorer, and DASL's.

scikit-learn is imported where it scores: its import takes as long as torch's, and `bench check` has
tried every first step by then. The problems of an SVM are solved by `smo`, whose numbers are
scikit-learn's.
"""

import math
import platform
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import combinations, pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed

from contrastbench.domains.progress import tracked
from contrastbench.domains.scoring.metrics import class_metrics
from contrastbench.errors import UserError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Array = np.ndarray[Any, np.dtype[Any]]
C_GRID = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)
INNER_FOLDS = 5
# samples: libsvm solves fewer in less time than it takes to load the compiled solver
MIN_COMPILED_SAMPLES = 500
KERNEL_ROWS = 8  # of a kernel that are computed at once


class Fold(NamedTuple):
    """The scores of a held-out fold, in percent, with the C chosen on its training part."""

    accuracy: float
    c: float
    inner: float  # percent, mean over the inner folds of the training part
    beside: dict[str, float]  # other metrics


@dataclass(frozen=True)
class FoldScores:
    """The scores of all held-out folds, in percent."""

    accuracy: list[float]
    c: list[float]
    inner: list[float]
    beside: list[dict[str, float]]

    @property
    def mean(self) -> float:
        """Return the mean accuracy over the folds."""
        return float(np.mean(self.accuracy))

    @property
    def std(self) -> float:
        """Standard deviation over folds (ddof 0), which says nothing about seeds."""
        return float(np.std(self.accuracy))

    @property
    def others(self) -> dict[str, list[float]]:
        """Return the other metrics of each fold."""
        return {name: [fold[name] for fold in self.beside] for name in self.beside[0]}


def check_folds(
    y: Array, folds: int, fix: str = "use more data or fewer --recipe folds", of: str = "the data"
) -> None:
    """Raise, naming the data, unless each class has enough members for outer and inner folds."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise UserError(
            f"{of}: all samples have one class, so nothing can be classified: use other data"
        )
    smallest = f"{of}: class {classes[counts.argmin()]} has {counts.min()} members"
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
    x, y = checked_samples(x, y, folds)
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


def checked_samples(x: Array, y: Array, folds: int) -> tuple[Array, Array]:
    """Return finite embeddings in float64, and their classes numbered 0, 1, ...

    Raises:
        UserError: embeddings are not finite, or a fold has no members of a class.
    """
    check_folds(y, folds)
    x = np.asarray(x, dtype=np.float64)
    if not np.isfinite(x).all():
        raise UserError("embeddings are not finite: the encoder diverged")
    return x, np.unique(y, return_inverse=True)[1]


def collected_folds(scored: Iterable[Fold], folds: int) -> FoldScores:
    """Collect the folds' scores, with a bar of progress."""
    columns = zip(*tracked(scored, "scoring folds", folds), strict=True)
    return FoldScores(*(list(column) for column in columns))


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
    right = [
        votes(pair_values(x, y, distance, *part, C_GRID)).argmax(-1) == y[part[1]] for part in parts
    ]
    inner_accuracy = np.mean([predicted.mean(axis=1) for predicted in right], axis=0)
    c = C_GRID[int(inner_accuracy.argmax())]
    (values,) = pair_values(x, y, distance, train, test, [c])
    predicted, truth = votes(values).argmax(axis=1), y[test]
    beside = class_metrics(truth, predicted, class_scores(values))
    return Fold(100 * (predicted == truth).mean(), c, 100 * float(inner_accuracy.max()), beside)


def votes(values: Array) -> Array:
    """(..., tests, classes) how many machines of two classes give each class.

    Args:
        values: (..., pairs, tests) their decision values, above 0 for the first class of a pair.
    """
    return summed_by_class(values > 0, values <= 0)


def class_scores(values: Array) -> Array:
    """(tests, classes) scikit-learn's `decision_function`: votes, and sums of decision values.

    A class's sum s is squeezed to less than a third of a vote, s / (3 (|s| + 1)).
    """
    total = summed_by_class(values, -values)
    return votes(values) + total / (3 * (np.abs(total) + 1))


def summed_by_class(first: Array, second: Array) -> Array:
    """(..., tests, classes) the sums of (..., pairs, tests) that a pair's two classes get."""
    classes = (1 + math.isqrt(1 + 8 * first.shape[-2])) // 2
    one, other = np.eye(classes)[np.array([*combinations(range(classes), 2)]).T]
    return first.swapaxes(-1, -2) @ one + second.swapaxes(-1, -2) @ other


def pair_values(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Sequence[float]
) -> Array:
    """(grid, pairs, tests) decision values of an SVM for each two classes, for each C."""
    smo = compiled_solver() if len(y) >= MIN_COMPILED_SAMPLES else None
    if smo is None:
        return by_libsvm(x, y, distance, train, test, grid)
    gamma, train = gamma_of(x[train]), train[y[train].argsort(kind="stable")]
    fit_kernel = kernel(distance, gamma, train, train, np.float32)
    square = np.exp(-gamma * distance[train, train])
    test_kernel = kernel(distance, gamma, train, test, np.float64)
    values = []
    ends = np.cumsum(np.unique(y[train], return_counts=True)[1])
    blocks = [slice(*ends) for ends in pairwise([0, *ends])]  # copied faster than scattered points
    for pair in combinations(blocks, 2):
        own = np.block([[fit_kernel[a, b] for b in pair] for a in pair])
        diagonal, tests = (np.concatenate([of[a] for a in pair]) for of in (square, test_kernel))
        sign = np.repeat([1.0, -1.0], [block.stop - block.start for block in pair])
        values += grid_values(smo, own, diagonal, sign, tests, grid)
    return np.array(values).reshape(-1, len(grid), len(test)).swapaxes(0, 1)


def grid_values(
    smo: ModuleType, own: Array, square: Array, sign: Array, tests: Array, grid: Sequence[float]
) -> list[Array]:
    """Return the decision values of the machines of two classes, for each C from small to large."""
    room, met, values = np.empty_like(own), True, list[Array]()
    for c in grid:
        if met:  # else the machine of a smaller C is that of each larger one
            *machine, met = smo.solve(own, room, square, sign, c)
            found = smo.decision_values(tests, *machine)
        values.append(found)
    return values


def by_libsvm(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Sequence[float]
) -> Array:
    """(grid, pairs, tests) the same by scikit-learn, which turns the sign of a single pair."""
    from sklearn.svm import SVC

    gamma = gamma_of(x[train])
    fit_kernel = kernel(distance, gamma, train, train, np.float64)
    test_kernel = kernel(distance, gamma, test, train, np.float64)
    svm = partial(SVC, kernel="precomputed", decision_function_shape="ovo")
    models = (svm(C=c).fit(fit_kernel, y[train]) for c in grid)
    values = np.array([model.decision_function(test_kernel) for model in models])
    return -values[:, None] if values.ndim == 2 else values.swapaxes(1, 2)


def gamma_of(x: Array) -> float:
    """Return scikit-learn's default gamma for the rows that fit."""
    return 1 / (x.shape[1] * x.var()) if x.var() > 0 else 1.0


def kernel(distance: Array, gamma: float, rows: Array, columns: Array, kind: Any) -> Array:
    """Return the kernel of some rows and columns, computed by a few rows, which a cache holds."""
    values = np.empty((len(rows), len(columns)), kind)
    for first in range(0, len(rows), KERNEL_ROWS):
        some = distance.take(rows[first : first + KERNEL_ROWS], 0).take(columns, 1)
        some *= -gamma
        values[first : first + KERNEL_ROWS] = np.exp(some, out=some)
    return values


@cache
def compiled_solver() -> ModuleType | None:
    """Return the compiled solver where its steps are libsvm's.

    On other processors than x86-64, compilers join libsvm's products and sums, which rounds once.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        return import_module("contrastbench.domains.scoring.smo")
    except ImportError:  # numba is missing, or too old for this numpy
        return None


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

    x, y = checked_samples(x, y, folds)
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
    predicted, scores = models[best].predict(x[test]), models[best].decision_function(x[test])
    accuracy = 100 * (predicted == y[test]).mean()
    if scores.ndim == 1:  # scikit-learn gives those of the second of two alone
        scores = np.stack([-scores, scores], axis=1)
    beside = class_metrics(y[test], predicted, scores)
    return Fold(accuracy, C_GRID[best], 100 * chosen[best], beside)


def linear_svm(c: float, seed: int) -> "Pipeline":
    """Make a linear SVM on standardised columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    return make_pipeline(StandardScaler(), LinearSVC(C=c, random_state=seed))
