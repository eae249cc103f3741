"""Effects over data sets and their verdicts: what answers, tables and plots read.

A difference of one point says little where training gains thirty, and much where it gains two. So
an effect is the difference from the baseline over the baseline's gain, and sets of all kinds are
comparable. Each domain counts alike. What the test takes as drawn, sets or seeds, is its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from statistics import fmean, median

from contrastbench.benchmarks.comparison import DIFFERENT
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import (
    SET_TESTS,
    Effects,
    Measured,
    SetName,
    SetTest,
    grouped,
)
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.comparison.statistics import ALPHA

Gains = Mapping[str, float]  # by column: two probes of one set gain differently
LEAST_GAIN = 1.0  # percent points; a share of less is noise
MIN_STANDARD_ERRORS = 2.0  # standard errors that a gain exceeds
MARGIN = 10.0  # percent of the training gain: effects within it are equal for practice
POINTS_MARGIN = 1.0  # percent points, where no control says what training gains
SIGNED_RANK = SET_TESTS["wilcoxon"]
SAME = "the same "
SAME_LOSS = f"{SAME}loss"  # as the baseline on each set, so there is nothing to test
SAME_SO_FAR = f"{SAME_LOSS} so far"  # it is another one on a set on which it has not run


@dataclass(frozen=True)
class Part:
    """The effect on the sets that a test is over: those of a domain, or all where sets are drawn.

    Args:
        sets: the effect on each.
        estimate: the effect over them.
        interval: at 95 %, before the correction for many rows.
        p: of no effect.
        p_equal: of an effect beyond the margin.
        barred: verdicts that are not given, as trainings have failed.
        verdict: after the correction.
    """

    sets: Effects
    estimate: float
    interval: tuple[float, float]
    p: float
    p_equal: float
    barred: frozenset[str] = frozenset()
    verdict: str = "undecided"


@dataclass(frozen=True)
class Effect:
    """One row's effects on the sets that count, their mean, and the verdict that parts make.

    Equal means equal in each part. Better, or worse, means so in some and in none the opposite.
    """

    row: str
    by_set: Effects
    failed: int  # sets on which a training has failed
    estimate: float
    interval: tuple[float, float]  # at 95 %, before the correction for many rows
    parts: Mapping[str, Part] = field(default_factory=dict)  # by domain
    over_sets: tuple[float, float] = (-inf, inf)  # the interval where sets are drawn, not seeds
    also: tuple[str, ...] = ()  # further rows that are the same runs
    holm: float = 1.0  # of the part that is shown clearest
    holm_equal: float = 1.0
    detectable: float | None = None  # found four times in five in each part, at the verdict's level
    verdict: str = "undecided"
    must: str = ""  # of a control, which is no contestant: how it has to come out
    everywhere: float = 0.0  # points, of a control: over all sets, also those that do not count
    joined: bool = False  # the row joined by `--loss`
    without_effect: int = 0  # sets on which it has failed and has no effect, which may be any
    base_failed: int = 0  # sets on which the baseline has diverged with some seeds

    @property
    def control(self) -> bool:
        """Whether the row is no contestant."""
        return bool(self.must)

    @property
    def came_out(self) -> bool:
        """Whether a control is as it must be: by its verdict, or by its sign for `below`."""
        return self.everywhere < 0 if self.must == "below" else self.verdict == self.must

    @property
    def is_copy(self) -> bool:
        """Whether the row is by algebra another one, which is tested in its place."""
        return self.verdict.startswith(SAME)

    @property
    def name(self) -> str:
        """The row with all that are the same runs."""
        return ", ".join([self.row, *self.also])

    @property
    def p(self) -> float:
        """The p of no effect in the part that is shown clearest."""
        return min((part.p for part in self.parts.values()), default=1.0)

    @property
    def p_equal(self) -> float:
        """The p of an effect beyond the margin in some part."""
        return max((part.p_equal for part in self.parts.values()), default=1.0)

    @property
    def decided(self) -> dict[str, str]:
        """The domains, where there are several, that show it better or worse."""
        words = {name: part.verdict for name, part in self.parts.items() if len(self.parts) > 1}
        return {name: word for name, word in words.items() if word in DIFFERENT}

    @property
    def by_domain(self) -> dict[str, float]:
        """The mean effect over the sets of each domain."""
        return {name: fmean(effects) for name, effects in grouped(self.by_set).items()}


@dataclass(frozen=True)
class OverSets:
    """All rows against a baseline over data sets."""

    effects: list[Effect]
    gains: Gains = field(default_factory=dict)  # of the sets that count; empty: effects are points
    left_out: list[str] = field(default_factory=list)  # sets or columns: training gains too little
    margin: float = POINTS_MARGIN
    test: SetTest = SIGNED_RANK
    to_come: int = 0  # losses that are listed and have no result; Holm's correction counts them
    without_results: list[str] = field(default_factory=list)  # rows that nothing is known of
    not_compared: list[str] = field(default_factory=list)  # columns that only one side has run on

    @property
    def unit(self) -> str:
        """Return the unit of the effects."""
        return "% of the training gain" if self.gains else "points"

    @property
    def decimals(self) -> int:
        """Return how many decimals effects are written with."""
        return 0 if self.gains else 1

    @property
    def sets(self) -> int:
        """The number of data sets that count."""
        return max((len(one.by_set) for one in self.effects), default=0)

    @property
    def most_seeds(self) -> int:
        """The most seeds that a loss has on a set."""
        sets = (one for row in self.contestants for one in row.by_set.values())
        return max((len(one.by_seed) for one in sets), default=0)

    @property
    def domains(self) -> list[str]:
        """The domains that some row has an effect in."""
        return list(dict.fromkeys(name for one in self.effects for name in one.by_domain))

    @property
    def on_these(self) -> bool:
        """Whether verdicts hold on these data sets, and nothing is said of others."""
        return self.test.units == "seeds"

    @property
    def nothing_counts(self) -> bool:
        """Whether training gains nothing clear on any set, so that no verdict is over sets."""
        return bool(self.left_out) and not self.gains

    @property
    def decides(self) -> bool:
        """Whether so many sets or seeds can give any verdict at all."""
        able = any(self.test.smallest_p(one.by_set) <= ALPHA for one in self.effects)
        return able and not self.nothing_counts

    @property
    def contestants(self) -> list[Effect]:
        """The rows that are no controls, best first, and then copies of the baseline."""
        return [one for one in self.effects if not one.control]

    @property
    def listed(self) -> list[Effect]:
        """The contestants that did not join."""
        return [one for one in self.contestants if not one.joined]

    @property
    def tested(self) -> list[Effect]:
        """The losses of the table with a verdict of their own, or else those that joined."""
        return [one for one in self.listed or self.contestants if not one.is_copy]

    @property
    def level(self) -> float:
        """The level of the first verdict by Holm's correction."""
        losses = len(self.tested) + (self.to_come if self.listed else 0)
        parts = len({name for one in self.tested for name in one.parts})
        return ALPHA / max(1, losses * parts)

    @property
    def fewer(self) -> list[Effect]:
        """The losses whose verdict is on fewer data sets than those of others."""
        some = (one for one in self.listed if not one.is_copy)
        return [one for one in some if len(one.by_set) + one.without_effect < self.sets]

    @property
    def least_seen(self) -> float | None:
        """The median of the effects that would have been seen; None: none would.

        It is over the losses that have run on most sets. One that nothing is random in says
        nothing; 0: there are no others.
        """
        if all(one.detectable == 0 for one in self.tested):
            return 0.0
        most = max(len(one.by_set) for one in self.tested)
        full = [one.detectable for one in self.tested if len(one.by_set) == most]
        some = [inf if least is None else least for least in full if least != 0]
        middle = median(some) if some else inf
        return None if middle == inf else middle

    def is_small(self, one: Effect) -> bool:
        """Return whether a row that is better or worse is shown to be so within the margin."""
        return one.verdict in DIFFERENT and one.holm_equal <= ALPHA

    def untrained_in(self, one: Effect) -> list[str]:
        """Return the domains in which a row is worse, and loses more than all that training gains.

        The best row without a training is at -100 %.
        """
        below = [name for name, mean in one.by_domain.items() if self.gains and mean < -100]
        shown = [name for name in below if "worse" in (one.verdict, one.decided.get(name))]
        return shown if not one.control else []


def too_few(test: SetTest) -> str:
    """Return the word instead of a verdict where none can be given."""
    return f"too few {test.units}"


def gains_of(untrained: Sequence[Comparison]) -> tuple[dict[str, float], list[str]]:
    """Return what training gains in each column, and where that is too little.

    A set is named as a whole where this holds for all its columns.
    """
    by_column: dict[str, list[Comparison]] = {}
    for one in untrained:
        if one.difference is not None:
            by_column.setdefault(one.column, []).append(one)
    best = [max(rows, key=lambda one: one.difference or 0.0) for rows in by_column.values()]
    gains = {one.column: -(one.difference or 0.0) for one in best if is_clear_gain(one)}
    whole = {one.data_set for one in best if one.column in gains}
    little = [one for one in best if one.column not in gains]
    names = [one.column if one.data_set in whole else one.dataset for one in little]
    return gains, list(dict.fromkeys(names))


def is_clear_gain(best: Comparison) -> bool:
    """Return whether the best row without a training is so far below that its column counts."""
    gain = -(best.difference or 0.0)
    return gain >= LEAST_GAIN and gain >= MIN_STANDARD_ERRORS * standard_error(best)


def standard_error(one: Comparison) -> float:
    """Return the standard error of a difference over seeds; zero for a single seed."""
    return (one.std or 0.0) / sqrt(max(1, len(one.seeds)))


def effects_by_set(mine: Iterable[Comparison], gains: Gains) -> tuple[Effects, set[SetName]]:
    """Return the effect on each set that counts, and those of them on which the row has failed."""
    found: dict[SetName, list[Measured]] = {}
    failed = set[SetName]()
    for one in mine:
        name = one.data_set
        if gains and one.column not in gains:
            continue
        if one.has_failed:
            failed.add(name)
        if (effect := measured(one, gains.get(one.column))) is not None:
            found.setdefault(name, []).append(effect)
    return {name: of_one_set(columns) for name, columns in found.items()}, failed


def measured(one: Comparison, gain: float | None) -> Measured | None:
    """Return the effect in one column, as a share of the gain if there is one; None: no number.

    A training that diverges loses all that training gains: its effect is -100 %, with each seed
    that does. Without a gain a place with such a seed has no number. A difference of the same runs,
    or one that is the same with two or more diverged seeds or zero with every seed, is no chance.
    """
    if one.same:
        return Measured(0.0)
    if one.has_failed and gain is None:
        return None
    if one.difference is None and not one.lost:
        return None
    scale = 1.0 if gain is None else gain / 100
    by_seed = {k: d / scale for k, d in zip(one.seeds, one.differences, strict=True)}
    by_seed |= dict.fromkeys(one.lost, -100.0)
    always = {*by_seed.values()} == {-100.0} or not any(
        round(value, DIGITS) for value in by_seed.values()
    )
    is_random = len(by_seed) == 1 or not always
    return Measured(fmean(by_seed.values()), by_seed if is_random else {})


def of_one_set(columns: Sequence[Measured]) -> Measured:
    """Return the mean over columns of a set, such as two probes of one training."""
    drawn = [one.by_seed for one in columns if one.by_seed]
    shared = set.intersection(*map(set, drawn)) if drawn else ()
    seeds = sorted(shared) or [seed for one in drawn[:1] for seed in list(one)[:1]]  # no freedom
    sums = {seed: sum(one.get(seed, 0.0) for one in drawn) for seed in seeds}
    by_seed = {seed: total / len(columns) for seed, total in sums.items()}
    return Measured(fmean(one.mean for one in columns), by_seed)
