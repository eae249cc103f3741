"""Statistics against plain loops, published examples and cases that have no answer."""

import math

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    corrected_t,
    critical,
    detectable_difference,
    half_width,
    mean_std,
    noncentrality,
)


# Demšar 2006, Table 6: AUC of C4.5 and its variants on 14 UCI sets
@pytest.mark.parametrize("n", [2, 5, 20])
def test_no_difference_at_all_is_p_one(n: int) -> None:
    assert corrected_t([0.0] * n, 1 / 9).p == 1.0


@pytest.mark.parametrize("n", [0, 1])
def test_one_pair_has_no_p(n: int) -> None:
    result = corrected_t([1.0] * n, 0.0)
    assert result.p is None
    assert result.why.startswith("too few")


def test_differences_without_spread_have_no_t() -> None:
    third = [100 * a / 3 - 100 * (a - 1) / 3 for a in (1, 2, 3, 7)]  # equal up to rounding
    assert len(set(third)) > 1
    assert corrected_t(third, 0.0).p is None


def test_corrected_t_is_the_formula() -> None:
    d = [1.2, -0.4, 0.9, 2.0, 0.3, 0.8]
    mean = sum(d) / 6
    variance = sum((x - mean) ** 2 for x in d) / 5
    t = mean / math.sqrt((1 / 6 + 0.5) * variance)
    steps = np.linspace(-abs(t), abs(t), 200_001)
    density = math.gamma(3) / (math.sqrt(5 * math.pi) * math.gamma(2.5)) * (1 + steps**2 / 5) ** -3
    assert corrected_t(d, 0.5).p == pytest.approx(1 - np.trapezoid(density, steps), abs=1e-9)


def test_corrected_t_without_a_ratio_is_the_paired_t_test() -> None:
    d = np.random.default_rng(0).normal(0.5, 1, 10)
    assert corrected_t(d.tolist(), 0.0).p == pytest.approx(stats.ttest_1samp(d, 0).pvalue)


@pytest.mark.parametrize("n", [2, 3, 30, 10**6])
@pytest.mark.parametrize("alpha", [1e-4, 0.9999])
def test_no_level_is_too_strict_or_too_lax_for_what_can_be_detected(n: int, alpha: float) -> None:
    one_sided = critical(n - 1, alpha)  # scipy.stats integrates where special inverts
    chance = stats.nct.sf(one_sided, n - 1, noncentrality(n - 1, alpha))
    assert chance == pytest.approx(0.8, abs=1e-3)


def test_overlap_raises_what_can_be_detected() -> None:
    plain, overlapping = (detectable_difference(1.0, 50, ratio) for ratio in (0.0, 1 / 9))
    assert overlapping / plain == pytest.approx(math.sqrt((1 / 50 + 1 / 9) * 50))
    assert detectable_difference(1.0, 1, 0.0) is None


def test_a_single_value_has_no_deviation() -> None:
    assert mean_std([3.0]) == (3.0, None)


@pytest.mark.parametrize("ratio", [0.0, 1 / 9, 0.5])
def test_an_interval_ends_where_its_test_begins_to_reject(ratio: float) -> None:
    """Overlapping training parts widen the interval as they widen the test."""
    spread = np.array([-1.0, 0.5, 0.5, 2.0, -2.0])
    ends = half_width(spread.std(ddof=1), len(spread), ratio)
    found = corrected_t(list(spread + ends), ratio)
    assert found.p == pytest.approx(ALPHA, rel=1e-3)
