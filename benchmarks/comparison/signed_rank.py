"""A signed-rank test with weights: its p, its interval, and the effect that it can see.

The units are data sets, and a weight says how much a set counts. Under the null hypothesis the
effects are symmetric about zero, so that every choice of signs is equally likely. This holds for
any weights and any tails, and one outlier moves the answer by its rank alone. With equal weights
this is Wilcoxon's test with the zeros split (Demšar 2006).
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy import special

Array = np.ndarray[Any, Any]
MAX_EXACT_UNITS = 13  # units whose 2^n signs are all tried
SIGN_DRAWS = 2**14  # choices of signs beyond that, the same at every call
DIGITS = 9  # accuracies are quotients: equal effects may differ in their last bits
TIE = 1e-6  # of the largest sum: sums that differ by less are equal
SIMULATIONS = 1000  # simulated samples behind the power
SIMULATED = 2**12  # choices of signs for each of them, unless the level is so low that few reach it
LEAST_BEYOND = 20  # of these choices, at the level
POWER = 0.8  # chance to notice an effect that is there


def p_value(effects: Sequence[float], weights: Sequence[float]) -> float:
    """Return the two-sided p of T = sum of w_i sign(e_i) rank(|e_i|) over all choices of signs.

    >>> p_value([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5)
    0.0625
    """
    return float(p_values(np.array([effects], dtype=float), weights)[0])


def p_values(samples: Array, weights: Sequence[float]) -> Array:
    """Return (B,) the same for each row of (B, n) samples."""
    signed = signed_ranks(samples) * np.asarray(weights)
    return shares_beyond(signed, signs(samples.shape[1]))


def shares_beyond(signed: Array, choices: Array) -> Array:
    """Return (B,) the share of choices of signs whose sum is at least as far from zero."""
    sizes = np.abs(signed)
    null = sizes @ choices.T
    np.abs(null, out=null)
    least = np.abs(signed.sum(axis=1)) - TIE * sizes.sum(axis=1)
    share: Array = np.count_nonzero(null >= least[:, None], axis=1) / len(choices)
    return share


def one_sided(effects: Sequence[float], weights: Sequence[float]) -> float:
    """Return the p of "the effects lie above zero".

    >>> one_sided([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5)
    0.03125
    """
    signed = signed_ranks(np.array([effects], dtype=float))[0] * np.asarray(weights)
    null = signs(len(effects)) @ np.abs(signed)  # the other half has the opposite sums
    least = signed.sum() - TIE * np.abs(signed).sum()
    return float(((null >= least).mean() + (-null >= least).mean()) / 2)


def p_equal(effects: Sequence[float], weights: Sequence[float], margin: float) -> float:
    """Return the larger p of two one-sided tests: above -margin, and below +margin.

    >>> p_equal([0.01, -0.02, 0.03, -0.01, 0.02], [1.0] * 5, 0.1)
    0.03125
    """
    above = one_sided([e + margin for e in effects], weights)
    below = one_sided([margin - e for e in effects], weights)
    return max(above, below)


def estimate(effects: Sequence[float], weights: Sequence[float]) -> float:
    """Return the shift at which the statistic changes its sign (Hodges and Lehmann 1963).

    >>> estimate([1.0, 2.0, 3.0, 4.0, 100.0], [1.0] * 5)
    3.0
    """
    steps = shifts(effects)
    middles = (steps[:-1] + steps[1:]) / 2
    values = (signed_ranks(np.asarray(effects) - middles[:, None]) * np.asarray(weights)).sum(1)
    first, last = np.searchsorted(-values, [-1e-9, 1e-9])
    return float(steps[[first, last]].mean()) if len(middles) else float(steps[0])


def interval(
    effects: Sequence[float], weights: Sequence[float], alpha: float
) -> tuple[float, float]:
    """Return the shifts that the test does not reject; infinite where so few units reject none.

    At a high level the test may reject every shift: then both ends are the estimate.

    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0] * 6, 0.05)
    (1.0, 6.0)
    """
    if smallest_p(len(effects)) > alpha:
        return -np.inf, np.inf
    steps = shifts(effects)  # the even places; between them the statistic is constant
    places = np.empty(2 * len(steps) - 1)
    places[::2], places[1::2] = steps, (steps[:-1] + steps[1:]) / 2
    kept = np.flatnonzero(p_values(np.asarray(effects) - places[:, None], weights) > alpha)
    if not len(kept):
        middle = estimate(effects, weights)
        return middle, middle
    return float(steps[kept[0] // 2]), float(steps[(kept[-1] + 1) // 2])


def smallest_p(n: int) -> float:
    """Return the smallest two-sided p that n units can give.

    >>> smallest_p(5)
    0.0625
    """
    return max(2.0 ** (1 - n), 1 / SIGN_DRAWS)


@cache
def detectable_effect(weights: tuple[float, ...], alpha: float) -> float | None:
    """Return the effect, in standard deviations over units, that is found four times in five.

    The power is simulated with normal effects. None: so few units find no effect at this level.

    >>> detectable_effect((1.0,) * 5, 0.05) is None
    True
    """
    n = len(weights)
    if smallest_p(n) > alpha:
        return None
    noise = np.random.default_rng(0).normal(size=(SIMULATIONS, n))
    drawn = SIMULATED if alpha * SIMULATED >= LEAST_BEYOND else SIGN_DRAWS
    choices = signs(n)[:drawn].astype(np.float32)

    def power(effect: float) -> float:
        signed = (signed_ranks(noise + effect) * np.array(weights)).astype(np.float32)
        return float((shares_beyond(signed, choices) <= alpha).mean())

    low, high = 0.0, 16.0
    guess = normal_guess(weights, alpha)
    for _ in range(11):
        seen = power(guess) >= POWER
        low, high = (low, guess) if seen else (guess, high)
        guess = (low + high) / 2 if low and high < 16 else guess * (0.9 if seen else 1.2)
    return high


def normal_guess(weights: Sequence[float], alpha: float) -> float:
    """Return the effect that a weighted mean of normal effects finds four times in five."""
    w = np.asarray(weights)
    shift = special.ndtri(1 - alpha / 2) + special.ndtri(POWER)
    return float(shift * np.sqrt((w**2).sum()) / w.sum())


def signed_ranks(samples: Array) -> Array:
    """Return (B, n) the rank of each size with the sign of its effect; equal sizes share ranks."""
    d = np.round(samples, DIGITS)
    size = np.abs(d)
    below = (size[:, None, :] < size[:, :, None]).sum(axis=2)
    same = (size[:, None, :] == size[:, :, None]).sum(axis=2)
    ranks: Array = np.sign(d) * (below + (same + 1) / 2)
    return ranks


@cache
def signs(n: int) -> Array:
    """Return (m, n) half of all choices of signs, or many drawn ones: none is another's negative.

    The first choice is that of no change, so that no p is zero.
    """
    if n <= MAX_EXACT_UNITS:
        return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)])
    drawn = np.random.default_rng(0).choice((-1.0, 1.0), size=(SIGN_DRAWS - 1, n))
    return np.concatenate([np.ones((1, n)), drawn])


def shifts(effects: Sequence[float]) -> Array:
    """Return the sorted means of any two effects: the statistic changes there alone."""
    e = np.round(np.asarray(effects, dtype=float), DIGITS)
    return np.unique((e[:, None] + e[None, :]) / 2)
