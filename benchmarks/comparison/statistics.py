"""Means with spread, paired tests, Holm's correction and ranks over datasets: plain numbers.

Of scipy `special` alone is imported at once: `stats` takes as long as reading thousands of records.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import numpy as np
from scipy import special

from contrastbench.benchmarks.comparison.signed_rank import DIGITS, MAX_EXACT_UNITS, POWER, p_value

ALPHA = 0.05
SMALLEST_ALPHA = 1e-4  # of a family of tests
MANY_SPLITS = 10**6  # splits: what these cannot resolve, no number does


@dataclass(frozen=True)
class PValue:
    """A two-sided p, the smallest that so many pairs can give, and why there is none."""

    p: float | None
    smallest: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Ranking:
    """Methods over datasets, the best one ranked 1 (Demšar 2006)."""

    ranks: list[float]  # average of each method
    n: int  # datasets
    chi2: float  # Friedman's, k - 1 degrees of freedom
    p: float
    critical_difference: float  # Nemenyi's

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Largest sets of methods, as positions from the best, that Nemenyi's test leaves equal."""
        order = sorted(range(len(self.ranks)), key=lambda i: self.ranks[i])
        groups: list[tuple[int, ...]] = []
        for first in range(len(order)):
            near = [
                i
                for i in order[first:]
                if self.ranks[i] - self.ranks[order[first]] <= self.critical_difference
            ]
            if len(near) > 1 and not (groups and groups[-1][-1] == near[-1]):
                groups.append(tuple(near))
        return groups


def mean_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation (ddof 1); one value has no deviation.

    >>> mean_std([1.0, 3.0])
    (2.0, 1.4142135623730951)
    """
    return fmean(values), float(np.std(values, ddof=1)) if len(values) > 1 else None


def wilcoxon(differences: Sequence[float]) -> PValue:
    """Signed-rank test of paired differences.

    Zeros are split between both signs (Demšar 2006, section 3.1.3).

    Exact over all signs up to 13 pairs. n pairs cannot give less than 2^(1-n): five give 0.0625 at
    best.

    >>> wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0]).p
    0.0625
    """
    d = np.round(differences, DIGITS)
    if len(d) < 2:
        return too_few(len(d), 1.0)
    if len(d) <= MAX_EXACT_UNITS:
        p = p_value(d.tolist(), [1.0] * len(d))  # ties and zeros included
    else:
        from scipy import stats

        p = stats.wilcoxon(d, zero_method="zsplit").pvalue if d.any() else 1.0
    return PValue(float(p), 2.0 ** (1 - len(d)))


def corrected_t(differences: Sequence[float], ratio: float) -> PValue:
    """Corrected resampled t-test of paired differences (Nadeau and Bengio 2003).

    t = mean / sqrt((1/n + ratio) variance) with n - 1 degrees of freedom. Training sets of
    different splits overlap, so their differences vary too little; the ratio makes up for it.
    Repeated k-fold: all n = repeats * k differences and 1 / (k - 1) (Bouckaert and Frank 2004).
    Ratio 0 is the ordinary paired t-test, for runs that share one split.

    Args:
        differences: one for each split.
        ratio: size of a test set over that of a training set.

    >>> round(corrected_t([1.0, 2.0, 3.0], ratio=0.0).p, 4)
    0.0742
    """
    d = np.round(differences, DIGITS)
    if len(d) < 2:
        return too_few(len(d), 0.0)
    if not d.any():
        return PValue(1.0)
    if np.ptp(d) == 0:
        return PValue(None, why="all differences are equal: no spread to test against")
    t = d.mean() / math.sqrt((1 / len(d) + ratio) * d.var(ddof=1))
    return PValue(float(2 * special.stdtr(len(d) - 1, -abs(t))))


def half_width(std: float, n: int, ratio: float, alpha: float = ALPHA) -> float:
    """Half of the interval around a mean difference that `corrected_t` does not reject.

    >>> round(half_width(1.0, 5, 0.0), 2)
    1.24
    """
    return critical(n - 1, alpha) * std * math.sqrt(1 / n + ratio)


def critical(freedom: float, alpha: float) -> float:
    """Student's t that is exceeded on both sides together with that chance."""
    return -float(special.stdtrit(freedom, alpha / 2))


def deviation_factor(n: int, alpha: float = ALPHA) -> float:
    """Return how many times the deviation of n values the true one may be, if they are normal.

    It is the upper end of the interval by the chi-squared distribution.

    >>> round(deviation_factor(3), 1), round(deviation_factor(30), 1)
    (6.3, 1.3)
    """
    return math.sqrt((n - 1) / float(special.chdtri(n - 1, 1 - alpha / 2)))


def detectable_difference(std: float, n: int, ratio: float, alpha: float = ALPHA) -> float | None:
    """The smallest true difference that `corrected_t` finds with a chance of 80 %.

    The t statistic of a difference D is distributed as a noncentral t whose noncentrality is
    D / (std sqrt(1/n + ratio)).

    Args:
        std: of the n differences, ddof 1.
        n: how many there are.
        ratio: as in `corrected_t`.
        alpha: the level of the two-sided test.

    Returns:
        None for a single difference.

    >>> round(detectable_difference(1.0, 5, 0.0), 2)
    1.68
    """
    return None if n < 2 else noncentrality(n - 1, alpha) * std * math.sqrt(1 / n + ratio)


@cache
def noncentrality(freedom: int, alpha: float) -> float:
    """The shift of t, with that many degrees of freedom, that is noticed with a chance of 80 %.

    Noticed upwards: a t that is significant in the wrong direction is no detection. Given the
    spread, t is normal, and its chance is averaged over quantiles of the spread; scipy's inverse
    never comes back at some small levels.
    """
    quantiles = special.chdtri(freedom, (np.arange(4000) + 0.5) / 4000)
    limits = critical(freedom, alpha) * np.sqrt(quantiles / freedom)
    low, high = limits.min() - 9, limits.max() + 9
    for _ in range(60):
        middle = (low + high) / 2
        missed = special.ndtr(limits - middle).mean()
        low, high = (middle, high) if missed > 1 - POWER else (low, middle)
    return float(high)


def seeds_needed(
    difference: float, std: float, per_seed: int, ratio: float, alpha: float = ALPHA
) -> int | None:
    """The fewest seeds with which a difference of that size is found with a chance of 80 %.

    Args:
        difference: the true one.
        std: of the differences over splits.
        per_seed: splits of a seed: folds, or 1.
        ratio: as in `corrected_t`; where it is not 0, more seeds help up to a point only.
        alpha: the level of the test.

    Returns:
        None if no number of seeds is enough.

    >>> seeds_needed(1.0, std=1.0, per_seed=1, ratio=0.0)
    10
    """

    def enough(seeds: int) -> bool:
        smallest = detectable_difference(std, seeds * per_seed, ratio, alpha)
        return smallest is not None and smallest <= abs(difference)

    low, high = 1, 2
    while difference and not enough(high):
        if high * per_seed > MANY_SPLITS:
            return None
        low, high = high, 2 * high
    return bisect_left(range(high), True, low + 1, key=enough) if difference else None


def too_few(n: int, smallest: float) -> PValue:
    """Return a missing p-value because there are too few pairs."""
    return PValue(None, smallest, f"n too small: {n} pair{'' if n == 1 else 's'}")


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method.

    The i-th smallest of m times m - i + 1, at least its predecessor's, at most 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, highest = [0.0] * len(ps), 0.0
    for i, place in enumerate(sorted(range(len(ps)), key=lambda j: ps[j])):
        highest = max(highest, min(1.0, (len(ps) - i) * ps[place]))
        adjusted[place] = highest
    return adjusted


def rank(scores: Sequence[Sequence[float]], alpha: float = ALPHA) -> Ranking:
    """Average ranks, Friedman's test and Nemenyi's critical difference (Demšar 2006).

    The difference is q sqrt(k (k + 1) / (6 N)).

    Args:
        scores: (N, k) of k methods on N datasets, higher is better; equal scores share their ranks.
        alpha: of the critical difference.

    Raises:
        ValueError: fewer than 3 methods or 2 datasets.

    >>> rank([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]).ranks
    [1.0, 2.5, 2.5]
    """
    n, k = np.shape(scores)
    if k < 3 or n < 2:
        raise ValueError(f"ranks need 3 methods and 2 datasets, got {k} and {n}")
    ranks = np.array(ranks_by_dataset(scores))
    centred = ranks - (k + 1) / 2
    spread = (centred**2).sum()  # smaller where ranks are shared, which corrects for ties
    chi2 = float((k - 1) * (centred.sum(axis=0) ** 2).sum() / spread) if spread else 0.0
    difference = largest_range(k, alpha) * math.sqrt(k * (k + 1) / (12 * n))
    p = float(special.chdtrc(k - 1, chi2))
    return Ranking(ranks.mean(axis=0).tolist(), n, chi2, p, difference)


@cache
def largest_range(k: int, alpha: float) -> float:
    """The range that k standard normal numbers exceed with that chance: the studentized range's q.

    P(range <= q) = k times the integral of phi(z) (Phi(z) - Phi(z - q))^(k - 1) over the largest z.

    >>> round(largest_range(10, 0.05) / math.sqrt(2), 3)  # Demšar 2006, Table 5
    3.164
    """
    z, step = np.linspace(-9, 9, 3601, retstep=True)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * step

    def chance(millionths: int) -> float:
        inside = special.ndtr(z) - special.ndtr(z - millionths / 1e6)
        return float(k * (density * inside ** (k - 1)).sum())

    return bisect_left(range(20_000_000), 1 - alpha, key=chance) / 1e6


def ranks_by_dataset(scores: Sequence[Sequence[float]]) -> list[list[float]]:
    """(N, k) the rank of each method on each dataset, 1 the best; equal scores share theirs.

    >>> ranks_by_dataset([[80.0, 90.0, 80.0]])
    [[2.5, 1.0, 2.5]]
    """
    table = np.round(scores, DIGITS)
    ours, others = table[:, :, None], table[:, None, :]
    ranks: list[list[float]] = (
        (others > ours).sum(axis=2) + ((others == ours).sum(axis=2) + 1) / 2
    ).tolist()
    return ranks


def intervals(
    groups: Sequence[Sequence[Sequence[float]]], draws: int = 10_000
) -> list[tuple[float, float]]:
    """95 % percentile intervals by bootstrap of the mean over groups of the mean over their rows.

    Rows are drawn from all groups, so that a group of a single row does not look certain: where it
    is not drawn, the mean is over the others.

    Args:
        groups: each (N, k), such as the ranks of k methods on the N datasets of a domain; groups
            count alike, however many of their rows are drawn.
        draws: of the rows, the same at every call.

    >>> intervals([[[1.0, 2.0], [1.0, 2.0]]]), intervals([[[1.0]] * 9, [[3.0]]])
    ([(1.0, 1.0), (2.0, 2.0)], [(1.0, 2.0)])
    """
    rng, sizes = np.random.default_rng(0), [len(group) for group in groups]
    counts = rng.multinomial(sum(sizes), [1 / sum(sizes)] * sum(sizes), size=draws)
    totals, present = np.zeros((draws, len(groups[0][0]))), np.zeros((draws, 1))
    for drawn, group in zip(np.split(counts, np.cumsum(sizes)[:-1], axis=1), groups, strict=True):
        n = drawn.sum(axis=1, keepdims=True)
        totals += drawn @ np.asarray(group, dtype=float) / np.maximum(n, 1)
        present += n > 0
    low, high = np.quantile(totals / present, [0.025, 0.975], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))
