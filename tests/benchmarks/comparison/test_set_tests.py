"""Tests over data sets against statsmodels and scipy, and how often their verdicts are wrong."""

from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from contrastbench.benchmarks.comparison.over_sets import detectable
from contrastbench.benchmarks.comparison.set_tests import (
    SET_TESTS,
    Effects,
    Measured,
    among_seeds,
    clipped_spread,
    grouped,
)
from counts import times

T, SIGNED_RANK = SET_TESTS["t"], SET_TESTS["wilcoxon"]
DOMAINS = ("graph", "tabular", "image", "sentence")


def drawn(seed: int, domains: int) -> Effects:
    """Draw effects with ties and zeros on one to six sets of each domain."""
    r = Random(seed)
    sets = [(name, f"{k}") for name in DOMAINS[:domains] for k in range(r.randint(1, 6))]
    return {where: Measured(round(r.gauss(0.3, 1), r.randint(0, 3))) for where in sets}


def named(domains: tuple[int, ...], values: np.ndarray) -> Effects:
    """Name the effects of so many sets in each domain."""
    sets = [(name, f"{k}") for name, n in zip(DOMAINS, domains, strict=False) for k in range(n)]
    return dict(zip(sets, map(Measured, values.tolist()), strict=True))


def test_the_t_test_is_statsmodels_contrast_of_domain_means() -> None:
    compared = 0
    for seed in range(times(500)):
        effects = drawn(seed, domains=1 + seed % 4)
        names = list(grouped(effects))
        columns = np.array([[float(domain == name) for name in names] for domain, _ in effects])
        fit = sm.OLS(np.array([one.mean for one in effects.values()]), columns).fit()
        if fit.df_resid < 1 or fit.mse_resid < 1e-12:
            continue
        compared += 1
        means = np.full(len(names), 1 / len(names))
        found = fit.t_test(means)
        assert T.estimate(effects) == pytest.approx(found.effect.item(), abs=1e-9)
        assert T.p_value(effects) == pytest.approx(found.pvalue.item(), abs=1e-9), effects
        assert T.interval(effects, 0.1) == pytest.approx(found.conf_int(0.1)[0], abs=1e-8)
        margin = 0.5
        above, below = (fit.t_test((means, side)).tvalue.item() for side in (-margin, margin))
        two_one_sided = max(stats.t.sf(above, fit.df_resid), stats.t.cdf(below, fit.df_resid))
        assert T.p_equal(effects, margin) == pytest.approx(two_one_sided, abs=1e-9), effects
    assert compared >= times(300)


def test_in_one_domain_the_signed_rank_test_is_scipys() -> None:
    """Two one-sided tests are those of the shifted effects."""
    for seed in range(times(500)):
        values = np.random.default_rng(seed).normal(0.2, 1, 3 + seed % 10)
        effects = named((len(values),), values)
        shown = stats.wilcoxon(values, method="exact").pvalue
        assert SIGNED_RANK.p_value(effects) == pytest.approx(shown, abs=1e-12)
        above = stats.wilcoxon(values + 0.9, alternative="greater", method="exact").pvalue
        below = stats.wilcoxon(values - 0.9, alternative="less", method="exact").pvalue
        assert SIGNED_RANK.p_equal(effects, 0.9) == pytest.approx(max(above, below), abs=1e-12)


@pytest.mark.parametrize("domains", [(6,), (4, 3, 2), (5, 5, 3, 1)])
def test_the_t_test_keeps_its_level_and_its_power(domains: tuple[int, ...]) -> None:
    """No effect is found in 5 % at most, and the stated one in 80 %, within 3 points."""
    rng, size = np.random.default_rng(len(domains)), (times(5000), sum(domains))
    noise = rng.normal(size=size)
    for level in (0.05, 0.05 / 12):
        wrong = np.mean([T.p_value(named(domains, e)) <= level for e in noise])
        assert wrong <= level + 3 * (level / len(noise)) ** 0.5
        true = T.detectable(spread_one(domains), level) or inf
        found = np.mean([T.p_value(named(domains, e + true)) <= level for e in noise])
        assert found == pytest.approx(0.8, abs=0.03 + 3 * 0.4 / len(noise) ** 0.5)


def spread_one(domains: tuple[int, ...]) -> Effects:
    """Make effects whose variance within domains is one."""
    values = np.concatenate([np.arange(n) - (n - 1) / 2 for n in domains])
    return named(domains, values * ((len(values) - len(domains)) / (values**2).sum()) ** 0.5)


def test_without_spread_or_freedom_the_t_test_says_what_is_sure() -> None:
    equal = named((3, 2), np.full(5, 2.0))
    assert (T.p_value(equal), T.p_equal(equal, 3.0), T.p_equal(equal, 1.0)) == (0.0, 0.0, 1.0)
    assert T.p_value(named((3, 2), np.zeros(5))) == 1.0
    single = named((1, 1, 1), np.array([1.0, 2.0, 3.0]))
    assert (T.p_value(single), T.smallest_p(single), T.detectable(single, 0.05)) == (1.0, 1.0, None)
    assert T.interval(single, 0.05) == (-inf, inf)


def test_one_outlier_hides_an_effect_from_the_t_test_alone() -> None:
    usual = named((8,), np.array([1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95, 1.0]))
    outlier = dict(usual) | {("graph", "0"): Measured(30.0)}
    assert T.p_value(usual) < 0.001
    assert T.p_value(outlier) > 0.2
    assert SIGNED_RANK.p_value(outlier) == SIGNED_RANK.p_value(usual) < 0.01


def test_where_one_domain_has_seeds_that_agree_nothing_is_certain() -> None:
    """Nothing is random in the other, and no seed has shown how much this one varies."""
    seeds = {0: 0.0, 1: 0.0}
    effects = {("graph", "A"): Measured(1.0), ("image", "B"): Measured(0.0, seeds)}
    assert among_seeds(effects) == (0.0, 0)
    assert among_seeds({("graph", "A"): Measured(1.0)}) == (0.0, inf)


def test_far_outliers_are_drawn_in_unless_most_values_are_equal() -> None:
    drawn_in = np.std([1.0, 2.0, 3.0, 4.0, 10.0], ddof=1)
    assert clipped_spread([1.0, 2.0, 3.0, 4.0, 100.0]) == pytest.approx(drawn_in)
    assert clipped_spread([0.0] * 4 + [10.0]) == pytest.approx(np.std([0.0] * 4 + [10.0], ddof=1))


@pytest.mark.parametrize(
    ("of_parts", "found"), [((2.0, 3.0), 3.0), ((2.0, None), None), ((0.0, 0.0), 0.0)]
)
def test_what_is_found_in_each_part_is_found_in_the_least_telling(
    of_parts: tuple[float | None, ...], found: float | None
) -> None:
    test: Any = SimpleNamespace(detectable=lambda sets, level: sets)
    parts: Any = {f"{k}": SimpleNamespace(sets=one) for k, one in enumerate(of_parts)}
    assert detectable(parts, 0.05, test) == found
