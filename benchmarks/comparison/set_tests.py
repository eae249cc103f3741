"""Tests of one row's effects over data sets, in which each domain counts alike.

The signed-rank test is the default: it holds for any tails, and one outlier moves it by its rank
alone. The t-test asks for normal effects with one spread, and finds smaller ones where these are.
Both take the sets as drawn. The test over seeds takes the sets as given and the seeds as drawn, so
its verdicts hold on these sets.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from contrastbench.benchmarks.comparison import TOO_FEW, Verdict, signed_rank
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    MANY_SPLITS,
    critical,
    noncentrality,
)

Units = Literal["sets", "seeds"]
# domain and dataset: two columns of one set, such as two probes, are no two
SetName = tuple[str, str]


class Measured(NamedTuple):
    """The effect on one set.

    Args:
        mean: over seeds.
        by_seed: the effect with each seed; empty where nothing is random, as where all trainings
            have failed.
    """

    mean: float
    by_seed: Mapping[int, float] = MappingProxyType({})


Effects = Mapping[SetName, Measured]  # of one row, by set


class Spread(NamedTuple):
    """The standard error of an estimate, with its degrees of freedom; 0: there is no error."""

    error: float
    freedom: float


class SignedRank:
    """The weighted signed-rank test, where an outlier counts by its rank.

    Its methods are those of each test of "the effect is zero".
    """

    name = "signed-rank test"
    units: Units = "sets"

    def estimate(self, effects: Effects) -> float:
        """Return the shift at which the statistic changes its sign."""
        return signed_rank.estimate(means(effects), weights_of(effects))

    def interval(self, effects: Effects, alpha: float) -> tuple[float, float]:
        """Return the shifts that the test does not reject."""
        return signed_rank.interval(means(effects), weights_of(effects), alpha)

    def p_value(self, effects: Effects) -> float:
        """Return the two-sided p over all choices of signs."""
        return signed_rank.p_value(means(effects), weights_of(effects))

    def p_equal(self, effects: Effects, margin: float) -> float:
        """Return the larger p of two one-sided tests: above -margin, and below +margin."""
        return signed_rank.p_equal(means(effects), weights_of(effects), margin)

    def smallest_p(self, effects: Effects) -> float:
        """Return the p of effects that all have one sign."""
        return signed_rank.smallest_p(len(effects))

    def detectable(self, effects: Effects, alpha: float) -> float | None:
        """Return the effect at 80 % power; far outliers do not count in the spread."""
        shift = signed_rank.detectable_effect(weights_of(effects), alpha)
        return None if shift is None else shift * clipped_spread(means(effects))


@dataclass(frozen=True)
class TTest:
    """A t-test of the mean over domains of their mean effects.

    Args:
        name: in a sentence.
        units: what it takes as drawn.
        spread: the function that gives the standard error of that mean.
    """

    name: str
    units: Units
    spread: Callable[[Effects], Spread]

    def estimate(self, effects: Effects) -> float:
        """Return the mean over domains."""
        return fmean(map(fmean, grouped(effects).values()))

    def interval(self, effects: Effects, alpha: float) -> tuple[float, float]:
        """Return the mean with its t interval; infinite without a degree of freedom."""
        error, freedom = self.spread(effects)
        if not freedom:
            return -inf, inf
        middle, half = self.estimate(effects), critical(freedom, alpha) * error
        return middle - half, middle + half

    def p_value(self, effects: Effects) -> float:
        """Return the two-sided p of "the mean is zero"."""
        return min(1.0, 2 * chance_above(abs(self.estimate(effects)), self.spread(effects)))

    def p_equal(self, effects: Effects, margin: float) -> float:
        """Return the larger p of the two one-sided tests."""
        return chance_above(margin - abs(self.estimate(effects)), self.spread(effects))

    def smallest_p(self, effects: Effects) -> float:
        """Return 0, or 1 without a degree of freedom."""
        return 0.0 if self.spread(effects).freedom else 1.0

    def detectable(self, effects: Effects, alpha: float) -> float | None:
        """Return the effect at 80 % power with this standard error.

        Degrees of freedom are rounded down, so that few values of them are computed.
        """
        error, freedom = self.spread(effects)
        if not freedom:
            return None
        return noncentrality(int(min(freedom + 1e-9, MANY_SPLITS)), alpha) * error


def between_sets(effects: Effects) -> Spread:
    """Return the standard error of the mean over domains, from one spread within all domains.

    It is that of a contrast of the group means of an analysis of variance, so n sets of k domains
    leave n - k degrees of freedom. With one domain it is that of the paired t-test.
    """
    groups = [np.round(values, DIGITS) for values in grouped(effects).values()]
    freedom = len(effects) - len(groups)
    if not freedom:
        return Spread(0.0, 0)
    within = sum(((values - values.mean()) ** 2).sum() for values in groups)
    scale = sum(weight**2 for weight in weights_of(effects))
    return Spread(sqrt(within / freedom * scale), freedom)


def among_seeds(effects: Effects) -> Spread:
    """Return the standard error of the mean over domains, from the seeds.

    The sets are given, and so are their samples: the error says how far other seeds would move the
    estimate on these sets. A domain's effect with a seed is the mean over its sets, since two sets
    may score one training, such as two tests of a sentence encoder. With the errors e of k domains

        SE^2 = sum of (e / k)^2,    freedom = SE^4 / sum of (e / k)^4 / f    (Satterthwaite 1946).

    The gain of a set, of which an effect is a share, is taken as known. Its runs are those of the
    baseline too, so a gain of k of its standard errors moves the effect up by 1 / (2 k^2) of the
    gain: by 2 % where k is the 5.7 of a set that admission barely takes, and by 12 % where k is 2
    and a set barely counts. By simulations in the tests the level of 33 losses holds on ten sets of
    eight seeds, also at 5.7. Three seeds exceed a far level, such as 0.05 / 33, up to four times
    where the errors of domains are very unequal.

    There is no freedom where the sets of a domain share fewer than two seeds, or where all seeds
    agree on a difference in it.
    """
    domains = sets_by_domain(effects).values()
    spreads = [among_seeds_of_domain([*sets.values()]) for sets in domains]
    parts = [(spread.error / len(spreads)) ** 2 for spread in spreads]
    freedoms = [spread.freedom for spread in spreads]
    error = sqrt(sum(parts))
    if not all(freedoms):
        return Spread(error, 0)
    if not round(error, DIGITS):
        return Spread(0.0, inf if min(freedoms) == inf else 0)
    shares = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    return Spread(error, sum(parts) ** 2 / shares)


def among_seeds_of_domain(sets: Sequence[Measured]) -> Spread:
    """Return the standard error of the mean over sets, from the seeds that all of them have.

    Sets on which nothing is random have a share in the mean and none in the error.
    """
    drawn = [effect.by_seed for effect in sets if effect.by_seed]
    if not drawn:
        return Spread(0.0, inf)
    seeds = sorted(set.intersection(*map(set, drawn)))
    if len(seeds) < 2:
        return Spread(0.0, 0)
    means = [sum(effect[seed] for effect in drawn) / len(sets) for seed in seeds]
    error = stdev(means) / sqrt(len(seeds))
    agree = not round(error, DIGITS) and round(fmean(means), DIGITS)
    return Spread(error, 0 if agree else len(seeds) - 1)


SetTest = SignedRank | TTest
SET_TESTS: Mapping[str, SetTest] = {
    "wilcoxon": SignedRank(),
    "t": TTest("t-test", "sets", between_sets),
    "seeds": TTest("t-test over seeds", "seeds", among_seeds),
}


class Part(NamedTuple):
    """The effect on the sets that a test is over: those of a domain, or all where sets are drawn.

    Args:
        sets: the effect on each.
        estimate: the effect over them.
        interval: at 95 %, before the correction for many rows.
        p: of no effect.
        p_equal: of an effect beyond the margin.
        too_few: the word in place of a verdict, where so few sets or seeds can give none.
        verdict: after the correction.
    """

    sets: Effects
    estimate: float
    interval: tuple[float, float]
    p: float
    p_equal: float
    too_few: Verdict | None
    verdict: Verdict = Verdict.UNDECIDED

    def verdict_by(self, p: float, p_equal: float) -> Verdict:
        """Return better, worse, equal within the margin or undecided, by corrected p-values."""
        if self.too_few:
            return self.too_few
        if p <= ALPHA:
            return Verdict.BETTER if self.estimate > 0 else Verdict.WORSE
        return Verdict.EQUAL if p_equal <= ALPHA else Verdict.UNDECIDED


def too_few(test: SetTest) -> Verdict:
    """Return the word in place of a verdict, where so few sets or seeds can give none."""
    return TOO_FEW[test.units == "seeds"]


def part_of(effects: Effects, margin: float, test: SetTest) -> Part:
    """Return the effect over some sets, not judged yet.

    Opposite effects do not cancel: no set may be shown to lie beyond the margin where they are
    called equal, nor on the other side of it where they are called better or worse.
    """
    estimate, beyond = test.estimate(effects), shown_beyond(effects, margin, test)
    opposed = any(mean * estimate < 0 for mean in beyond)
    return Part(
        effects,
        estimate,
        test.interval(effects, ALPHA),
        1.0 if opposed else test.p_value(effects),
        1.0 if beyond else test.p_equal(effects, margin),
        too_few(test) if test.smallest_p(effects) > ALPHA else None,
    )


def shown_beyond(effects: Effects, margin: float, test: SetTest) -> list[float]:
    """Return the effects that seeds show to lie beyond the margin, each on one given set."""
    if test.units == "sets":
        return []
    far = {name: effect for name, effect in effects.items() if abs(effect.mean) > margin}
    return [one.mean for name, one in far.items() if test.p_value({name: one}) <= ALPHA]


def chance_above(mean: float, spread: Spread) -> float:
    """Return the chance that a mean of no effect is at least this; 1 without freedom."""
    error, freedom = spread
    if not freedom:
        return 1.0
    if not error:  # nothing is random, which shows any mean but zero
        return 0.0 if round(mean, DIGITS) > 0 else 1.0
    return float(special.stdtr(freedom, -mean / error))


def weights_of(effects: Effects) -> tuple[float, ...]:
    """Return a weight for each set, so that domains count alike.

    >>> weights_of(dict.fromkeys([("graph", "A"), ("graph", "B"), ("image", "C")], Measured(0.0)))
    (0.25, 0.25, 0.5)
    """
    sizes = Counter(domain for domain, _ in effects)
    return tuple(1 / (len(sizes) * sizes[domain]) for domain, _ in effects)


def grouped(effects: Effects) -> dict[str, list[float]]:
    """Return the mean effects of each domain."""
    return {name: means(sets) for name, sets in sets_by_domain(effects).items()}


def sets_by_domain(effects: Effects) -> dict[str, Effects]:
    """Return the effects on the sets of each domain."""
    domains = dict.fromkeys(domain for domain, _ in effects)
    return {name: {key: e for key, e in effects.items() if key[0] == name} for name in domains}


def means(effects: Effects) -> list[float]:
    """Return the mean effect on each set."""
    return [effect.mean for effect in effects.values()]


def clipped_spread(values: list[float]) -> float:
    """Return the standard deviation of effects over sets, far outliers drawn in (Tukey 1977)."""
    low, high = np.quantile(values, [0.25, 0.75])
    fence = 3 * (high - low) or np.inf
    return float(np.std(np.clip(values, low - fence, high + fence), ddof=min(1, len(values) - 1)))
