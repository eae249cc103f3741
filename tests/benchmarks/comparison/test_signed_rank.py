"""The weighted signed-rank test against loops, scipy and simulations."""

from itertools import product
from random import Random

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.comparison import signed_rank
from contrastbench.benchmarks.comparison.signed_rank import (
    detectable_effect,
    estimate,
    interval,
    one_sided,
    p_equal,
    p_value,
    p_values,
    smallest_p,
)
from counts import times

DOMAINS = (1 / 12,) * 3 + (1 / 8,) * 2 + (1 / 16,) * 4 + (1 / 4,)  # four domains of ten sets


def sample(seed: int) -> tuple[list[float], list[float]]:
    """Draw up to nine effects with ties and zeros, and weights."""
    r = Random(seed)
    n = r.randint(1, 9)
    effects = [round(r.gauss(0.3, 1), r.randint(0, 2)) for _ in range(n)]
    return effects, [r.choice([0.1, 0.25, 0.5, 1.0]) for _ in range(n)]


def loop(effects: list[float], weights: list[float]) -> tuple[float, float]:
    """Return both p by a loop over all choices of signs."""
    sizes = [abs(e) for e in effects]
    ranks = [sum(b < a for b in sizes) + (sum(b == a for b in sizes) + 1) / 2 for a in sizes]
    own = sum(w * r * ((e > 0) - (e < 0)) for e, r, w in zip(effects, ranks, weights, strict=True))
    sums = [
        sum(s * w * r * (e != 0) for s, e, r, w in zip(flip, effects, ranks, weights, strict=True))
        for flip in product((-1, 1), repeat=len(effects))
    ]
    two = sum(abs(total) >= abs(own) - 1e-9 for total in sums) / len(sums)
    return two, sum(total >= own - 1e-9 for total in sums) / len(sums)


def test_beyond_all_signs_many_are_drawn_and_no_change_is_one_of_them() -> None:
    """So the least p of a sample is one of these choices."""
    drawn = signed_rank.signs(signed_rank.MAX_EXACT_UNITS + 1)
    assert drawn.shape == (signed_rank.SIGN_DRAWS, signed_rank.MAX_EXACT_UNITS + 1)
    assert drawn[0].min() == 1
    assert set(np.unique(drawn[1:])) == {-1, 1}


def test_both_p_are_those_of_a_loop_over_all_signs() -> None:
    for seed in range(times(500)):
        effects, weights = sample(seed)
        two, one = loop(effects, weights)
        assert p_value(effects, weights) == pytest.approx(two, abs=1e-12), (effects, weights)
        assert one_sided(effects, weights) == pytest.approx(one, abs=1e-12), (effects, weights)


def test_equal_weights_are_wilcoxons_test() -> None:
    for seed in range(times(500)):
        r = Random(seed)
        effects = [r.gauss(0.3, 1) for _ in range(r.randint(2, 12))]
        n = len(effects)
        expected = stats.wilcoxon(effects, method="exact").pvalue
        assert p_value(effects, [0.2] * n) == pytest.approx(expected, abs=1e-12)
        pairs = [(a + b) / 2 for i, a in enumerate(effects) for b in effects[i:]]
        assert estimate(effects, [0.2] * n) == pytest.approx(np.median(pairs), abs=1e-8)


def test_the_interval_holds_the_shifts_that_the_test_keeps() -> None:
    for seed in range(times(200)):
        effects, weights = sample(seed)
        low, high = interval(effects, weights, 0.1)
        assert low <= estimate(effects, weights) <= high
        for bound, outside in ((low, -1e-3), (high, 1e-3)):
            if np.isfinite(bound):
                beyond, at, within = (
                    p_value([e - bound - step for e in effects], weights)
                    for step in (outside, 0, -outside / 1000)
                )
                assert beyond <= 0.1 < max(at, within)


def test_an_interval_at_a_level_that_rejects_every_shift_is_the_estimate() -> None:
    effects, weights = [0.0, 1.0, 2.0, -1.0, 0.3], [0.1, 0.25, 0.05, 0.1, 0.25]
    middle = estimate(effects, weights)
    assert p_value([e - middle for e in effects], weights) < 0.9999
    assert interval(effects, weights, 0.9999) == (middle, middle)


def test_few_units_reject_nothing() -> None:
    assert interval([1.0, 2.0, 3.0], [1.0] * 3, 0.05) == (-np.inf, np.inf)
    assert detectable_effect((1.0,) * 3, 0.05) is None
    assert smallest_p(3) == p_value([1.0, 2.0, 3.0], [1.0] * 3) == 0.25
    assert smallest_p(20) == 2**-14, "of so many choices of signs"


def test_many_units_are_drawn_alike_at_every_call() -> None:
    effects = [Random(k).gauss(0.5, 1) for k in range(30)]
    expected = stats.wilcoxon(effects).pvalue
    first = p_value(effects, [1.0] * 30)
    assert first == p_value(effects, [1.0] * 30)
    assert first == pytest.approx(expected, abs=0.01)
    signed_rank.signs.cache_clear()
    assert first == p_value(effects, [1.0] * 30)


@pytest.mark.parametrize("tails", ["normal", "t3"])
@pytest.mark.parametrize("weights", [DOMAINS, (1.0,) * 6], ids=["domains", "six"])
def test_under_no_effect_the_level_holds(weights: tuple[float, ...], tails: str) -> None:
    rng, size = np.random.default_rng(0), (times(20_000), len(weights))
    effects = rng.normal(size=size) if tails == "normal" else rng.standard_t(3, size=size)
    p = p_values(effects, weights)
    for alpha in (0.05, 0.01):
        noise = 3 * (alpha / len(p)) ** 0.5
        assert (p <= alpha).mean() <= alpha + noise


def test_an_effect_at_the_margin_is_rarely_called_equal() -> None:
    rng = np.random.default_rng(0)
    for margin in (0.5, 2.0):
        effects = rng.normal(margin, 1, size=(times(2000), len(DOMAINS)))
        found = np.mean([p_equal(list(e), DOMAINS, margin) <= 0.05 for e in effects])
        assert found <= 0.05 + 3 * (0.05 / len(effects)) ** 0.5


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 12])
def test_the_stated_power_comes_true(alpha: float) -> None:
    weights = (*DOMAINS, *DOMAINS[:4])
    effect = detectable_effect(weights, alpha)
    assert effect is not None
    drawn = np.random.default_rng(1).normal(effect, 1, size=(times(20_000), len(weights)))
    power = np.mean([p_values(part, weights) <= alpha for part in np.split(drawn, 20)])
    assert power == pytest.approx(0.8, abs=0.03 + 3 * 0.4 / len(drawn) ** 0.5)
