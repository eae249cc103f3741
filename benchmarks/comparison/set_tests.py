"""Tests of one row's effects over data sets, in which each domain counts alike.

The signed-rank test is the default: it holds for any tails, and one outlier moves it by its rank
alone. The t-test asks for normal effects with one spread, and finds smaller ones where these are.
"""

from collections import Counter
from collections.abc import Mapping
from math import inf, sqrt
from statistics import fmean
from typing import Protocol

import numpy as np
from scipy import special

from contrastbench.benchmarks.comparison import signed_rank
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.comparison.statistics import critical, noncentrality

Set = tuple[str, str]  # domain and dataset: two columns of one set, such as two probes, are no two
Effects = Mapping[Set, float]  # of one row, by set


class SetTest(Protocol):
    """A test of "the effect is zero", and what belongs to it."""

    name: str

    def estimate(self, effects: Effects) -> float:
        """Return the effect over sets."""

    def interval(self, effects: Effects, alpha: float) -> tuple[float, float]:
        """Return the effects that the test does not reject."""

    def p_value(self, effects: Effects) -> float:
        """Return the two-sided p of "no effect"."""

    def p_equal(self, effects: Effects, margin: float) -> float:
        """Return the larger p of two one-sided tests: above -margin, and below +margin."""

    def smallest_p(self, effects: Effects) -> float:
        """Return the smallest p that so many sets can give."""

    def detectable(self, effects: Effects, alpha: float) -> float | None:
        """Return the effect that sets with this spread show four times in five; None: none."""


class SignedRank:
    """The weighted signed-rank test, where an outlier counts by its rank."""

    name = "signed-rank test"

    def estimate(self, effects: Effects) -> float:
        """Return the shift at which the statistic changes its sign."""
        return signed_rank.estimate(list(effects.values()), weights_of(effects))

    def interval(self, effects: Effects, alpha: float) -> tuple[float, float]:
        """Return the shifts that the test does not reject."""
        return signed_rank.interval(list(effects.values()), weights_of(effects), alpha)

    def p_value(self, effects: Effects) -> float:
        """Return the two-sided p over all choices of signs."""
        return signed_rank.p_value(list(effects.values()), weights_of(effects))

    def p_equal(self, effects: Effects, margin: float) -> float:
        """Return the larger p of the two one-sided tests."""
        return signed_rank.p_equal(list(effects.values()), weights_of(effects), margin)

    def smallest_p(self, effects: Effects) -> float:
        """Return the p of effects that all have one sign."""
        return signed_rank.smallest_p(len(effects))

    def detectable(self, effects: Effects, alpha: float) -> float | None:
        """Return the effect at 80 % power; far outliers do not count in the spread."""
        shift = signed_rank.detectable(weights_of(effects), alpha)
        return None if shift is None else shift * clipped_spread(list(effects.values()))


class TTest:
    """The t-test of the mean over domains of their mean effects, with one spread within domains.

    It is a contrast of the group means of an analysis of variance, so n sets of k domains leave
    n - k degrees of freedom. With one domain it is the paired t-test of baseline and row.
    """

    name = "t-test"

    def estimate(self, effects: Effects) -> float:
        """Return the mean over domains."""
        return fmean(map(fmean, grouped(effects).values()))

    def interval(self, effects: Effects, alpha: float) -> tuple[float, float]:
        """Return the mean with its t interval; infinite without a degree of freedom."""
        if not freedom(effects):
            return -inf, inf
        middle, half = self.estimate(effects), critical(freedom(effects), alpha) * error(effects)
        return middle - half, middle + half

    def p_value(self, effects: Effects) -> float:
        """Return the two-sided p of "the mean is zero"."""
        return min(1.0, 2 * chance_above(abs(self.estimate(effects)), effects))

    def p_equal(self, effects: Effects, margin: float) -> float:
        """Return the larger p of the two one-sided tests."""
        return chance_above(margin - abs(self.estimate(effects)), effects)

    def smallest_p(self, effects: Effects) -> float:
        """Return 0, or 1 without a degree of freedom."""
        return 0.0 if freedom(effects) else 1.0

    def detectable(self, effects: Effects, alpha: float) -> float | None:
        """Return the effect at 80 % power with this standard error."""
        if not freedom(effects):
            return None
        return noncentrality(freedom(effects), alpha) * error(effects)


SET_TESTS: Mapping[str, SetTest] = {"wilcoxon": SignedRank(), "t": TTest()}


def freedom(effects: Effects) -> int:
    """Return the degrees of freedom within domains."""
    return len(effects) - len(grouped(effects))


def error(effects: Effects) -> float:
    """Return the standard error of the mean over domains."""
    groups = [np.round(values, DIGITS) for values in grouped(effects).values()]
    within = sum(((values - values.mean()) ** 2).sum() for values in groups)
    scale = sum(weight**2 for weight in weights_of(effects))
    return sqrt(within / freedom(effects) * scale)


def chance_above(mean: float, effects: Effects) -> float:
    """Return the chance that a mean of no effect is at least this; 1 without freedom."""
    if not freedom(effects):
        return 1.0
    if not error(effects):  # no spread within any domain, which shows any mean but zero
        return 0.0 if round(mean, DIGITS) > 0 else 1.0
    return float(special.stdtr(freedom(effects), -mean / error(effects)))


def weights_of(effects: Effects) -> tuple[float, ...]:
    """Return a weight for each set, so that domains count alike.

    >>> weights_of({("graph", "A"): 0.0, ("graph", "B"): 0.0, ("image", "C"): 0.0})
    (0.25, 0.25, 0.5)
    """
    sizes = Counter(domain for domain, _ in effects)
    return tuple(1 / (len(sizes) * sizes[domain]) for domain, _ in effects)


def grouped(effects: Effects) -> dict[str, list[float]]:
    """Return the effects of each domain."""
    found: dict[str, list[float]] = {}
    for (domain, _), value in effects.items():
        found.setdefault(domain, []).append(value)
    return found


def clipped_spread(values: list[float]) -> float:
    """Return the standard deviation of effects over sets, far outliers drawn in (Tukey 1977)."""
    low, high = np.quantile(values, [0.25, 0.75])
    fence = 3 * (high - low) or np.inf
    return float(np.std(np.clip(values, low - fence, high + fence), ddof=min(1, len(values) - 1)))
