"""Statistics against plain loops, published examples and cases that have no answer."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    SMALLEST_ALPHA,
    corrected_t,
    critical,
    detectable_difference,
    half_width,
    holm,
    mean_std,
    noncentrality,
    seeds_needed,
    wilcoxon,
)

# Demšar 2006, Table 6: AUC of C4.5 and its variants on 14 UCI sets
DEMSAR = [
    [0.763, 0.768, 0.771, 0.798],
    [0.599, 0.591, 0.590, 0.569],
    [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657],
    [0.882, 0.888, 0.886, 0.898],
    [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685],
    [0.583, 0.583, 0.563, 0.625],
    [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000],
    [0.940, 0.962, 0.965, 0.962],
    [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975],  # printed alike, but ranked 2 and 3
    [0.957, 0.978, 0.946, 0.970],
]


def signed_ranks(differences: list[float]) -> tuple[float, float]:
    """R+ and R-, equal sizes sharing ranks and zeros split between both."""
    sizes = [abs(d) for d in differences]
    plus = minus = 0.0
    for d in differences:
        share = [i for i, size in enumerate(sorted(sizes), start=1) if size == abs(d)]
        position = sum(share) / len(share)
        plus += position * (1.0 if d > 0 else 0.5 if d == 0 else 0.0)
        minus += position * (1.0 if d < 0 else 0.5 if d == 0 else 0.0)
    return plus, minus


def wilcoxon_by_hand(differences: list[float]) -> float:
    """The share of all signs whose smaller rank sum is at most the one seen."""
    seen = min(signed_ranks(differences))
    signs = list(itertools.product((-1, 1), repeat=len(differences)))
    lower = [
        min(signed_ranks([s * d for s, d in zip(sign, differences, strict=True)])) <= seen
        for sign in signs
    ]
    return sum(lower) / len(signs)


@pytest.mark.parametrize(
    "differences",
    [
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1.0, -2.0, 3.0, 4.0, 5.0],
        [1.0, 1.0, 0.0, 4.0, -5.0],
        [0.5, 0.5, 0.5, 0.5],
        [0.0, 0.0, 3.0, 1.0, 2.0, -1.0, 2.0],
        [2.0, -1.0],
    ],
)
def test_wilcoxon_tries_all_signs(differences: list[float]) -> None:
    assert wilcoxon(differences).p == pytest.approx(wilcoxon_by_hand(differences))


def test_wilcoxon_ranks_as_demsars_example() -> None:
    differences = [round(row[1] - row[0], 3) for row in DEMSAR]
    assert signed_ranks(differences) == (
        93.0,
        12.0,
    )  # section 3.1.3: T = 12, critical value 21 at 0.05
    p = wilcoxon(differences).p
    assert p is not None
    assert p < 0.02


@pytest.mark.parametrize("n", [5, 13, 14, 20])
def test_wilcoxon_is_scipys_exact_test_without_ties(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.4, 1, n)
    assert wilcoxon(differences.tolist()).p == pytest.approx(
        stats.wilcoxon(differences, method="exact").pvalue
    )


def test_five_pairs_cannot_go_below_a_sixteenth() -> None:
    best = wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0])
    assert best.p == best.smallest == 0.0625


@pytest.mark.parametrize("n", [2, 5, 20])
def test_no_difference_at_all_is_p_one(n: int) -> None:
    assert wilcoxon([0.0] * n).p == 1.0
    assert corrected_t([0.0] * n, 1 / 9).p == 1.0


@pytest.mark.parametrize("n", [0, 1])
def test_one_pair_has_no_p(n: int) -> None:
    for result in (wilcoxon([1.0] * n), corrected_t([1.0] * n, 0.0)):
        assert result.p is None
        assert result.why.startswith("n too small")


def test_differences_without_spread_have_no_t() -> None:
    third = [100 * a / 3 - 100 * (a - 1) / 3 for a in (1, 2, 3, 7)]  # equal up to rounding
    assert len(set(third)) > 1
    assert corrected_t(third, 0.0).p is None
    assert wilcoxon(third).p == 0.125


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


def test_corrected_t_keeps_its_level_where_the_plain_one_does_not() -> None:
    """Splits that share most of their training rows.

    Correlation ratio / (1 + ratio), the paper's assumption.
    """
    rng, ratio = np.random.default_rng(0), 1 / 9
    rho = ratio / (1 + ratio)
    common = rng.normal(size=(2000, 1)) * math.sqrt(rho)
    draws = common + rng.normal(size=(2000, 10)) * math.sqrt(1 - rho)
    corrected, plain = (
        np.mean([p < 0.05 for row in draws if (p := corrected_t(row.tolist(), r).p) is not None])
        for r in (ratio, 0.0)
    )
    assert corrected == pytest.approx(0.05, abs=0.015)
    assert plain > 0.12


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_four_of_five_detectable_differences_are_found(n: int) -> None:
    rng = np.random.default_rng(n)
    drawn = rng.normal(detectable_difference(2.0, n, 0.0), 2.0, size=(40_000, n))
    found = np.mean(stats.ttest_1samp(drawn, 0, axis=1).pvalue < ALPHA)
    assert found == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / 40_000))


@pytest.mark.parametrize("n", [2, 3, 30, 10**6])
@pytest.mark.parametrize("alpha", [SMALLEST_ALPHA, 0.9999])
def test_no_level_is_too_strict_or_too_lax_for_what_can_be_detected(n: int, alpha: float) -> None:
    one_sided = critical(n - 1, alpha)  # scipy.stats integrates where special inverts
    chance = stats.nct.sf(one_sided, n - 1, noncentrality(n - 1, alpha))
    assert chance == pytest.approx(0.8, abs=1e-3)


def test_overlap_raises_what_can_be_detected() -> None:
    plain, overlapping = (detectable_difference(1.0, 50, ratio) for ratio in (0.0, 1 / 9))
    assert overlapping / plain == pytest.approx(math.sqrt((1 / 50 + 1 / 9) * 50))
    assert detectable_difference(1.0, 1, 0.0) is None


@pytest.mark.parametrize("per_seed", [1, 10])
def test_the_seeds_needed_are_the_fewest(per_seed: int) -> None:
    seeds = seeds_needed(-0.9, 1.0, per_seed, 0.001)
    enough, too_few = (detectable_difference(1.0, n * per_seed, 0.001) for n in (seeds, seeds - 1))
    assert enough <= 0.9
    assert too_few is None or too_few > 0.9


def test_more_seeds_do_not_make_up_for_overlapping_folds() -> None:
    # beyond all seeds: (t's critical value + normal quantile of 80 %) * std * sqrt(ratio)
    limit = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * 3.0 / 3
    assert seeds_needed(limit * 0.99, 3.0, 10, 1 / 9) is None
    assert seeds_needed(limit * 1.05, 3.0, 10, 1 / 9) > 5
    assert seeds_needed(0.0, 3.0, 1, 0.0) is None


def test_holm_by_hand() -> None:
    assert holm([0.607, 0.019, 0.016]) == pytest.approx(
        [0.607, 0.048, 0.048]
    )  # Demšar's three p, section 3.2.2
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_rejects_what_the_step_down_rejects() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        ps = (rng.random(6) ** 3).tolist()
        rejected = set()
        for step, i in enumerate(np.argsort(ps)):
            if ps[i] > 0.05 / (6 - step):
                break
            rejected.add(int(i))
        assert {i for i, p in enumerate(holm(ps)) if p <= 0.05} == rejected


def test_a_single_value_has_no_deviation() -> None:
    assert mean_std([3.0]) == (3.0, None)


@pytest.mark.parametrize("ratio", [0.0, 1 / 9, 0.5])
def test_an_interval_ends_where_its_test_begins_to_reject(ratio: float) -> None:
    """Overlapping training parts widen the interval as they widen the test."""
    spread = np.array([-1.0, 0.5, 0.5, 2.0, -2.0])
    ends = half_width(spread.std(ddof=1), len(spread), ratio)
    found = corrected_t(list(spread + ends), ratio)
    assert found.p == pytest.approx(ALPHA, rel=1e-3)
