"""Statistics against plain loops, published examples and cases that have no answer."""

import math

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    corrected_t,
    critical,
    mean_std,
    noncentrality,
)


def test_corrected_t_is_the_formula() -> None:
    d = [1.2, -0.4, 0.9, 2.0, 0.3, 0.8]
    mean = sum(d) / 6
    variance = sum((x - mean) ** 2 for x in d) / 5
    t = mean / math.sqrt((1 / 6 + 0.5) * variance)
    steps = np.linspace(-abs(t), abs(t), 200_001)
    density = math.gamma(3) / (math.sqrt(5 * math.pi) * math.gamma(2.5)) * (1 + steps**2 / 5) ** -3
    assert corrected_t(d, 0.5).p == pytest.approx(1 - np.trapezoid(density, steps), abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 30, 10**6])
@pytest.mark.parametrize("alpha", [1e-4, 0.9999])
def test_no_level_is_too_strict_or_too_lax_for_what_can_be_detected(n: int, alpha: float) -> None:
    one_sided = critical(n - 1, alpha)  # scipy.stats integrates where special inverts
    chance = stats.nct.sf(one_sided, n - 1, noncentrality(n - 1, alpha))
    assert chance == pytest.approx(0.8, abs=1e-3)


def paired(spread: float | None, n: int, ratio: float) -> Comparison:
    return Comparison("r", "A", "graph", difference=1.0, spread=spread, n=n, ratio=ratio)


def test_overlap_raises_what_can_be_detected() -> None:
    plain, overlapping = (paired(1.0, 50, ratio).detectable for ratio in (0.0, 1 / 9))
    assert overlapping / plain == pytest.approx(math.sqrt((1 / 50 + 1 / 9) * 50))
    assert paired(None, 1, 0.0).detectable is None


def test_a_single_value_has_no_deviation() -> None:
    assert mean_std([3.0]) == (3.0, None)


@pytest.mark.parametrize("ratio", [0.0, 1 / 9, 0.5])
def test_an_interval_ends_where_its_test_begins_to_reject(ratio: float) -> None:
    """Overlapping training parts widen the interval as they widen the test."""
    spread = np.array([-1.0, 0.5, 0.5, 2.0, -2.0])
    ends = paired(spread.std(ddof=1), len(spread), ratio).half_width
    found = corrected_t(list(spread + ends), ratio)
    assert found.p == pytest.approx(ALPHA, rel=1e-3)
