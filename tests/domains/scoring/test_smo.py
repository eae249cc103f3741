"""The compiled solver against libsvm, bit by bit."""

import sys

import numpy as np
import pytest
from sklearn.svm import SVC

from contrastbench.domains.scoring import smo, svm
from contrastbench.domains.scoring.svm import C_GRID, squared_distances
from counts import times

pytestmark = pytest.mark.skipif(
    svm.compiled_solver() is None, reason="libsvm's own solver runs on this processor"
)
Array = np.ndarray


def solved(kernel: Array, y: Array, c: float) -> tuple[Array, float, bool]:
    """Coefficients of all points, the offset, and whether C was met, by the compiled solver."""
    sign = np.where(y == 0, 1.0, -1.0)
    single = kernel.astype(np.float32)
    return smo.solve(single, np.empty_like(single), np.diag(kernel).copy(), sign, c)


def by_libsvm(kernel: Array, y: Array, c: float) -> tuple[Array, float]:
    model = SVC(C=c, kernel="precomputed").fit(kernel, y)
    coefficients = np.zeros(len(y))
    coefficients[model.support_] = model._dual_coef_[0]
    return coefficients, -model._intercept_[0]


def drawn(seed: int, n: int) -> tuple[Array, Array]:
    """A kernel of overlapping classes whose first quarter of points is there twice."""
    rng = np.random.default_rng(seed)
    first = rng.integers(n // 4, n - n // 4)
    y = np.repeat([0, 1], [first, n - first])
    x = rng.normal(size=(n, 3)) * rng.choice([0.1, 1, 10], size=3) + y[:, None] * rng.normal()
    x[rng.permutation(n)[: n // 4]] = x[rng.permutation(n)[: n // 4]]
    return np.exp(-rng.choice([0.01, 0.3, 5]) * squared_distances(x)), y


@pytest.mark.parametrize("seed", range(times(60, least=4)))
def test_coefficients_and_offsets_are_those_of_libsvm_to_the_last_bit(seed: int) -> None:
    kernel, y = drawn(seed, 40 + 7 * (seed % 30))
    for c in (*C_GRID, 1e5):
        (found, offset, _), (expected, rho) = solved(kernel, y, c), by_libsvm(kernel, y, c)
        assert np.array_equal(found, expected)
        assert offset == rho


def test_where_c_is_never_met_larger_ones_give_the_same_machine() -> None:
    y = np.repeat([0, 1], 30)
    x = np.random.default_rng(3).normal(size=(60, 3)) + 4 * y[:, None]
    kernel = np.exp(-0.3 * squared_distances(x))
    free, offset, met = solved(kernel, y, 1e4)
    assert not met
    for other in (np.abs(free).max() * factor for factor in (0.99, 2, 100)):
        found, rho = by_libsvm(kernel, y, other)
        assert np.array_equal(found, free) == (rho == offset) == (other > np.abs(free).max())
        assert solved(kernel, y, other)[2] or np.array_equal(found, free)


def test_a_problem_that_shrinks_many_times_is_solved_as_by_libsvm() -> None:
    kernel, y = drawn(7, 400)
    assert SVC(C=1e4, kernel="precomputed").fit(kernel, y).n_iter_[0] > 20 * 400
    (found, offset, _), (expected, rho) = solved(kernel, y, 1e4), by_libsvm(kernel, y, 1e4)
    assert np.array_equal(found, expected)
    assert offset == rho


@pytest.mark.parametrize("classes", [2, 7])
def test_predictions_are_those_of_libsvm(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(classes)
    y = 3 * rng.integers(classes, size=120)  # classes need not be 0, 1, ...
    x = rng.normal(size=(120, 4)) + y[:, None] * rng.random(4) / 3
    x[::5] = x[0]  # alike, of several classes: votes are equal
    points = rng.permutation(120)
    arguments = (x, y, squared_distances(x), points[:90], points[90:], C_GRID)
    monkeypatch.setattr(svm, "MIN_COMPILED_SAMPLES", 0)
    found = svm.votes(svm.pair_values(*arguments))
    monkeypatch.setattr(svm, "MIN_COMPILED_SAMPLES", 1000)
    monkeypatch.setattr(svm, "compiled_solver", lambda: pytest.fail("solves a few"))
    assert np.array_equal(found, svm.votes(svm.pair_values(*arguments)))


def test_without_numba_libsvm_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "contrastbench.domains.scoring.smo", None)
    assert svm.compiled_solver.__wrapped__() is None
    monkeypatch.undo()
    monkeypatch.setattr(svm.platform, "machine", lambda: "arm64")
    assert svm.compiled_solver.__wrapped__() is None
