"""Means with spread, paired tests, Holm's correction and ranks over datasets: plain numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy import stats

ALPHA = 0.05
DIGITS = 9  # accuracies are quotients: equal differences may differ in their last bits
EXACT = 13  # pairs whose 2^n signs are all tried, ties and zeros included


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
    return fmean(values), stdev(values) if len(values) > 1 else None


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
    if len(d) <= EXACT:
        every = {"permutation_type": "samples", "n_resamples": 2**EXACT, "vectorized": True}
        p = stats.permutation_test((d,), signed_rank_sum, **every).pvalue
    else:
        p = stats.wilcoxon(d, zero_method="zsplit").pvalue if d.any() else 1.0
    return PValue(float(p), 2.0 ** (1 - len(d)))


def signed_rank_sum(d: np.ndarray[Any, Any], axis: int = -1) -> Any:
    """Ranks of the sizes, summed with the signs; zeros split between both signs cancel."""
    return (np.sign(d) * stats.rankdata(np.abs(d), axis=axis)).sum(axis=axis)


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
    return PValue(float(2 * stats.t.sf(abs(t), len(d) - 1)))


def too_few(n: int, smallest: float) -> PValue:
    """No p."""
    return PValue(None, smallest, f"n too small: {n} pair{'' if n == 1 else 's'}")


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down p-values.

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
    table = np.round(scores, DIGITS)
    n, k = table.shape
    if k < 3 or n < 2:
        raise ValueError(f"ranks need 3 methods and 2 datasets, got {k} and {n}")
    ranks = stats.rankdata(-table, axis=1)
    if np.ptp(ranks) == 0:
        chi2, p = 0.0, 1.0
    else:
        chi2, p = map(float, stats.friedmanchisquare(*table.T))
    q = stats.studentized_range.ppf(1 - alpha, k, math.inf) / math.sqrt(2)
    return Ranking(
        ranks.mean(axis=0).tolist(), n, chi2, p, float(q * math.sqrt(k * (k + 1) / (6 * n)))
    )
