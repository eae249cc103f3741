"""Stratified folds of an SVM whose C each training part chooses: GraphCL's scorer, and DASL's.

scikit-learn is imported where it scores: its import takes as long as torch's, and `bench check` has
tried every first step by then.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed

from contrastbench.domains.progress import tracked
from contrastbench.domains.reading import refuse
from contrastbench.domains.samples import Array, draw_folds, small_classes
from contrastbench.domains.scoring.metrics import class_metrics

if TYPE_CHECKING:
    from sklearn.svm import SVC

Groups = Sequence[str] | Array
C_GRID = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)
INNER_FOLDS = 5
DATA_FIX = "use more data"
FOLDS_FIX = f"{DATA_FIX} or fewer --recipe folds"


class Fold(NamedTuple):
    """The scores of a held-out fold, in percent, with the C chosen on its training part."""

    accuracy: float
    c: float
    inner: float  # percent, mean over the inner folds of the training part
    beside: dict[str, float]  # other metrics


def check_folds(y: Array, folds: int, fix: str = FOLDS_FIX, of: str = "the data") -> None:
    classes, counts = np.unique(y, return_counts=True)
    fault = ": all samples have one class, so nothing can be classified: use other data"
    refuse(of, (len(classes) < 2, fault))
    smallest = f"{of}: class {classes[counts.argmin()]} has {counts.min()} members"
    refuse(smallest, (counts.min() < folds, f", fewer than the {folds} folds; {fix}"))
    training = counts - np.ceil(counts / folds)
    fault = f": {folds} folds leave too few in a training part to choose C by; use more data"
    refuse(smallest, (training.min() < 2 or training.max() < INNER_FOLDS, fault))


def svm_folds(
    x: Array, y: Array, folds: int = 10, seed: int = 0, groups: Groups = ()
) -> list[Fold]:
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
        groups: (n,) names of what stays in one fold, the inner ones too; or none.

    Raises:
        UserError: a class has fewer members than folds, or the embeddings are not finite.

    >>> y = np.repeat([0, 1], 10)
    >>> x = y[:, None] + np.arange(20)[:, None] / 100
    >>> [float(fold.accuracy) for fold in svm_folds(x, y, folds=2)]
    [100.0, 100.0]
    """
    x, y = checked_samples(x, y, folds)
    distance, splits = squared_distances(x), draw_folds(y, folds, seed, groups)
    # libsvm releases the interpreter's lock, so threads fill the cores without copying the
    # distances
    pool = Parallel(n_jobs=cpu_count(), prefer="threads", return_as="generator")
    with small_classes():
        scored = pool(delayed(svm_fold)(x, y, distance, *split, groups) for split in splits)
        return [*tracked(scored, "scoring folds", folds)]


def svm_part(x: Array, y: Array, train: Array, test: Array, groups: Groups = ()) -> Fold:
    x, y = checked_samples(x, y, 2)
    with small_classes():
        return svm_fold(x, y, squared_distances(x), train, test, groups)


def checked_samples(x: Array, y: Array, folds: int) -> tuple[Array, Array]:
    check_folds(y, folds)
    x = np.asarray(x, dtype=np.float64)
    refuse("", (not np.isfinite(x).all(), "embeddings are not finite: the encoder diverged"))
    return x, np.unique(y, return_inverse=True)[1]


def squared_distances(x: Array) -> Array:
    """(n, n) squared Euclidean distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.einsum("ij,ij->i", x, x)
        distance = np.maximum(square[:, None] + square[None, :] - 2 * (x @ x.T), 0)
    refuse("", (not np.isfinite(distance).all(), "embeddings are too large to square: scale them"))
    return distance


def svm_fold(
    x: Array, y: Array, distance: Array, train: Array, test: Array, groups: Groups = ()
) -> Fold:
    """Score one fold with the C that is best in the training part's own folds.

    The last number is the mean accuracy over the inner folds, in percent. It chose C, so it is no
    estimate for new samples; it has not seen the test part.
    """
    named = np.asarray(groups)[train] if len(groups) else ()
    inner = draw_folds(y[train], INNER_FOLDS, groups=named)
    parts = ((train[fit], train[held]) for fit, held in inner)
    right = [
        [(model.predict(kernel) == y[part[1]]).mean() for model, kernel in machines]
        for part in parts
        for machines in [svms(x, y, distance, *part, C_GRID)]
    ]
    inner_accuracy = np.mean(right, axis=0)
    c = C_GRID[int(inner_accuracy.argmax())]
    ((model, kernel),) = svms(x, y, distance, train, test, [c])
    predicted, truth = model.predict(kernel), y[test]
    beside = class_metrics(truth, predicted, model.decision_function(kernel))
    return Fold(100 * (predicted == truth).mean(), c, 100 * float(inner_accuracy.max()), beside)


def svms(
    x: Array, y: Array, distance: Array, train: Array, test: Array, grid: Sequence[float]
) -> Iterator[tuple["SVC", Array]]:
    """Yield an SVM of the training samples for each C, and the kernel of the test samples.

    The training samples are in the order of their classes, in which libsvm pairs them: the same
    numbers, and a pair of classes reads two blocks of the kernel, not entries all over it.
    """
    from sklearn.svm import SVC

    # scikit-learn's default, by the rows that fit
    gamma = 1 / (x.shape[1] * x[train].var()) if x[train].var() > 0 else 1.0
    train = train[y[train].argsort(kind="stable")]
    kernels = (np.exp(-gamma * distance[np.ix_(rows, train)]) for rows in (train, test))
    fit_kernel, test_kernel = kernels
    for c in grid:
        yield SVC(C=c, kernel="precomputed").fit(fit_kernel, y[train]), test_kernel


def linear_folds(
    x: Array, y: Array, folds: int = 10, seed: int = 0, groups: Groups = ()
) -> list[Fold]:
    """Stratified k-fold accuracy of a linear SVM whose C the fold after the tested one chooses.

    DASL's scorer (Chen et al. 2024, A.2): eight tenths fit, one chooses, one is tested. Columns are
    standardised by the part that fits, which is not printed: else sums over thousands of nodes make
    the largest graph the only one that counts. Ties go to the smaller C. Arguments are those of
    `svm_folds`; there are three folds or more, and the seed is the solver's too.

    >>> y = np.repeat([0, 1], 10)
    >>> x = y[:, None] + np.arange(20)[:, None] / 100
    >>> [float(fold.accuracy) for fold in linear_folds(x, y, folds=5)]
    [100.0, 100.0, 100.0, 100.0, 100.0]
    """
    from contrastbench.domains.scoring.logistic import unconverged

    x, y = checked_samples(x, y, folds)
    parts = [test for _, test in draw_folds(y, folds, seed, groups)]
    following = [*parts[1:], parts[0]]
    with unconverged():
        pairs = zip(following, parts, strict=True)
        scored = (linear_fold(x, y, *pair, seed) for pair in pairs)
        return [*tracked(scored, "scoring folds", folds)]


def linear_fold(x: Array, y: Array, validation: Array, test: Array, seed: int) -> Fold:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    fit = np.setdiff1d(np.arange(len(y)), [*test, *validation])
    machines = (make_pipeline(StandardScaler(), LinearSVC(C=c, random_state=seed)) for c in C_GRID)
    models = [machine.fit(x[fit], y[fit]) for machine in machines]
    chosen = [model.score(x[validation], y[validation]) for model in models]
    best = int(np.argmax(chosen))
    predicted = models[best].predict(x[test])
    accuracy = 100 * (predicted == y[test]).mean()
    beside = class_metrics(y[test], predicted, models[best].decision_function(x[test]))
    return Fold(accuracy, C_GRID[best], 100 * chosen[best], beside)
