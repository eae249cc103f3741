"""Effects over data sets and their verdicts: what answers, tables and plots read.

A difference of one point says little where training gains thirty, and much where it gains two. So
an effect is the difference from the baseline over the baseline's gain, and sets of all kinds are
comparable. Each domain counts alike. What the test takes as drawn, sets or seeds, is its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean, median

from contrastbench.benchmarks.comparison.set_tests import SET_TESTS, Effects, SetTest, grouped
from contrastbench.benchmarks.comparison.statistics import ALPHA

Gains = Mapping[str, float]  # by column: two probes of one set gain differently
MARGIN = 10.0  # percent of the training gain: effects within it are equal for practice
POINTS_MARGIN = 1.0  # percent points, where no control says what training gains
SIGNED_RANK = SET_TESTS["wilcoxon"]
SAME = "the same "
SAME_LOSS = f"{SAME}loss"  # as the baseline on each set, so there is nothing to test
SAME_SO_FAR = f"{SAME_LOSS} so far"  # it is another one on a set on which it has not run


@dataclass(frozen=True)
class Effect:
    """One row's effects on the sets that count, their mean and the verdict."""

    row: str
    by_set: Effects
    failed: int  # sets on which a training has failed
    estimate: float
    interval: tuple[float, float]  # at level alpha, before the correction for many rows
    p: float
    p_equal: float
    holm: float = 1.0
    holm_equal: float = 1.0
    detectable: float | None = None  # the effect found four times in five at the verdict's level
    verdict: str = "undecided"
    must: str = ""  # of a control, which is no contestant: how it has to come out
    everywhere: float = 0.0  # points, of a control: over all sets, also those that do not count
    joined: bool = False  # the row joined by `--loss`
    alone: Mapping[str, str] = field(default_factory=dict)  # domains that show a verdict alone
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
    alpha: float = ALPHA
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
        able = any(self.test.smallest_p(one.by_set) <= self.alpha for one in self.effects)
        return able and not self.nothing_counts

    @property
    def contestants(self) -> list[Effect]:
        """The rows that are no controls, best first, and then copies of the baseline."""
        return [one for one in self.effects if not one.control]

    @property
    def listed(self) -> list[Effect]:
        """The contestants that did not join."""
        return [one for one in self.contestants if not one.joined]

    def is_small(self, one: Effect) -> bool:
        """Return whether a row that is better or worse is shown to be so within the margin."""
        return one.verdict in ("better", "worse") and one.holm_equal <= self.alpha


def too_few(test: SetTest) -> str:
    """Return the word instead of a verdict where none can be given."""
    return f"too few {test.units}"


def least_seen(found: Sequence[Effect]) -> float | None:
    """Return the median of the effects that would have been seen; None: none would.

    It is over the rows that have run on most sets. A row that nothing is random in says nothing.
    """
    most = max((len(one.by_set) for one in found), default=0)
    full = [one.detectable for one in found if len(one.by_set) == most]
    some = [inf if least is None else least for least in full if least != 0]
    middle = median(some) if some else inf
    return None if middle == inf else middle
