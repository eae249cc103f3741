"""Combine data sets: a loss's effect is a share of what training gains on a set.

A difference of one point says little where training gains thirty, and much where it gains two. So
an effect is the difference from the baseline over the baseline's gain, and sets of all kinds are
comparable. Each domain counts alike. What the test takes as drawn, sets or seeds, is its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from statistics import fmean

import numpy as np

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.set_tests import (
    SET_TESTS,
    Effects,
    Measured,
    SetName,
    SetTest,
    grouped,
)
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm

Gains = Mapping[str, float]  # by column: two probes of one set gain differently
MARGIN = 10.0  # percent of the training gain: effects within it are equal for practice
POINTS_MARGIN = 1.0  # percent points, where no control says what training gains
LEAST_GAIN = 1.0  # percent points; a share of less is noise
SIGNED_RANK = SET_TESTS["wilcoxon"]
SAME = "the same "
SAME_LOSS = f"{SAME}loss"  # as the baseline on each set, so there is nothing to test
SAME_SO_FAR = f"{SAME_LOSS} so far"  # it is another one on a set on which it has not run
MIN_STANDARD_ERRORS = 2.0  # standard errors that a gain exceeds


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


def over_sets(
    comparisons: Sequence[Comparison],
    untrained: Sequence[str],
    controls: Mapping[str, str] | None = None,
    margin: float | None = None,
    alpha: float = ALPHA,
    test: SetTest = SIGNED_RANK,
    expected: Iterable[str] = (),
) -> OverSets:
    """Return the effect and verdict of each row over data sets.

    Args:
        comparisons: every row against the baseline in every column.
        untrained: rows without a training, such as the raw input: the baseline's gain is over the
            best of them.
        controls: all rows that are no contestants, each with how it has to come out: `worse`,
            `below` or `better`. They have effects but no part in corrections. Where training gains
            nothing on any set, only they have effects, in points.
        margin: effects within it are equal; by default 10 % of the gain, or one point.
        alpha: the level of verdicts, over all rows together.
        test: of one row's effects.
        expected: the losses that the table lists. Those without a result count in the correction
            too, so that no verdict is lost as results arrive.
    """
    controls = controls or {}
    gains, left_out = gains_of([one for one in comparisons if one.row in untrained])
    if margin is None:
        margin = MARGIN if gains else POINTS_MARGIN
    rows: dict[str, list[Comparison]] = {}
    for one in comparisons:
        rows.setdefault(one.row, []).append(one)
    found = [effect(row, mine, gains, margin, alpha, test) for row, mine in rows.items()]
    some = {one.row: one for one in found if one is not None}
    others = [
        control_effect(one, rows[row], controls[row], alpha, test)
        for row, one in some.items()
        if row in controls
    ]
    judged = {*some} - {*controls} if gains or not left_out else ()
    losses = {row: mine for row, mine in rows.items() if row in judged}
    originals = {row: original_of(row, losses) for row in losses}
    so_far = {row for row, mine in losses.items() if originals[row] and all_same(mine)}
    tested = [some[row] for row in losses if originals[row] == row and row not in so_far]
    contestants = decided_effects([one for one in tested if one.joined], alpha, test)
    to_come = sum(row not in some or row in so_far for row in expected)
    contestants += decided_effects([one for one in tested if not one.joined], alpha, test, to_come)
    contestants = list(with_copies(contestants, originals))
    contestants += [replace(some[row], verdict=SAME_SO_FAR) for row in losses if row in so_far]
    contestants += [replace(some[row], verdict=SAME_LOSS) for row in losses if not originals[row]]
    return OverSets([*contestants, *others], gains, left_out, margin, alpha, test, to_come)


def original_of(row: str, losses: Mapping[str, Sequence[Comparison]]) -> str:
    """Return the first row that is the same loss on each set; itself, or nothing: the baseline.

    A row that lacks results where it is a loss of its own is no copy.
    """
    if any(one.waiting for one in losses[row]):
        return row
    if all_same(losses[row]):
        return ""
    own = originals_by_column(row, losses[row])
    return next(name for name, mine in losses.items() if originals_by_column(name, mine) == own)


def all_same(mine: Iterable[Comparison]) -> bool:
    """Return whether a row is the baseline's loss wherever it has run."""
    return all(one.same for one in mine)


def originals_by_column(row: str, mine: Sequence[Comparison]) -> tuple[bool, dict[str, str]]:
    """Return whose loss a row is in each column; a row that joined is a copy of such ones alone."""
    return mine[0].joined, {one.column: one.same_as or row for one in mine}


def with_copies(tested: Sequence[Effect], originals: Mapping[str, str]) -> Iterator[Effect]:
    """Yield the effects, and behind each one those of its copies."""
    for one in tested:
        yield one
        for row, original in originals.items():
            if original == one.row != row:
                yield replace(one, row=row, verdict=f"{SAME}as {original}")


def control_effect(
    one: Effect, mine: Sequence[Comparison], must: str, alpha: float, test: SetTest
) -> Effect:
    """Return a control with its verdict over all sets, also those on which training gains nothing.

    Only these sets can show that the comparison sees nothing at all.
    """
    everywhere, _ = effects_by_set(mine, {})
    if not everywhere:
        return replace(one, verdict=too_few(test), must=must, everywhere=one.estimate)
    points = test.estimate(everywhere)
    if must == "below":
        verdict = "below" if points < 0 else "not below"
        return replace(one, verdict=verdict, must=must, everywhere=points)
    p = test.p_value(everywhere)
    verdict = verdict_of(everywhere, p, 1.0, alpha, test)
    return replace(one, p=p, holm=p, verdict=verdict, must=must, everywhere=points)


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
    whole = {(one.domain, one.dataset) for one in best if one.column in gains}
    little = [one for one in best if one.column not in gains]
    names = [one.column if (one.domain, one.dataset) in whole else one.dataset for one in little]
    return gains, list(dict.fromkeys(names))


def is_clear_gain(best: Comparison) -> bool:
    """Return whether the best row without a training is so far below that its column counts."""
    gain = -(best.difference or 0.0)
    return gain >= LEAST_GAIN and gain >= MIN_STANDARD_ERRORS * standard_error(best)


def standard_error(one: Comparison) -> float:
    """Return the standard error of a difference over seeds; zero for a single seed."""
    return (one.std or 0.0) / sqrt(max(1, len(one.seeds)))


def effect(
    row: str,
    mine: Sequence[Comparison],
    gains: Gains,
    margin: float,
    alpha: float,
    test: SetTest,
) -> Effect | None:
    """Return one row's effect; None where it meets no set that counts."""
    by_set, failed = effects_by_set(mine, gains)
    if not by_set:
        return None
    base_failed = {(one.domain, one.dataset) for one in mine if one.base_lost}
    return Effect(
        row,
        by_set,
        len(failed),
        test.estimate(by_set),
        test.interval(by_set, alpha),
        test.p_value(by_set),
        test.p_equal(by_set, margin),
        joined=any(one.joined for one in mine),
        without_effect=len(failed - by_set.keys()),
        base_failed=len(base_failed & by_set.keys()),
    )


def effects_by_set(mine: Iterable[Comparison], gains: Gains) -> tuple[Effects, set[SetName]]:
    """Return the effect on each set that counts, and those of them on which the row has failed."""
    found: dict[SetName, list[Measured]] = {}
    failed = set[SetName]()
    for one in mine:
        name = one.domain, one.dataset
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


def decided_effects(
    found: Sequence[Effect], alpha: float, test: SetTest, to_come: int = 0
) -> list[Effect]:
    """Return the rows with verdicts, all families of tests corrected after Holm; best first."""
    rest = [1.0] * to_come
    different = holm([*(one.p for one in found), *rest])[: len(found)]
    equal = holm([*(one.p_equal for one in found), *rest])[: len(found)]
    level = alpha / max(1, len(found) + to_come)
    alone = verdicts_by_domain(found, alpha, test, to_come)
    seen = [
        replace(
            judged_effect(one, p, q, alpha, test),
            detectable=test.detectable(one.by_set, level),
            alone=alone.get(one.row, {}),
        )
        for one, p, q in zip(found, different, equal, strict=True)
    ]
    return sorted(seen, key=lambda one: -one.estimate)


def verdicts_by_domain(
    found: Sequence[Effect], alpha: float, test: SetTest, to_come: int
) -> dict[str, dict[str, str]]:
    """Return by row the domains that show it better or worse by their own sets alone.

    Effects of opposite signs cancel in the mean over domains. All domains of all rows are one
    family of tests, with those that have yet to run, so that no verdict is lost as they do.
    """
    domains = {name for one in found for name in one.by_domain}
    if len(domains) < 2:
        return {}
    places = [(one, name, of_domain(one.by_set, name)) for one in found for name in one.by_domain]
    rest = [1.0] * ((len(found) + to_come) * len(domains) - len(places))
    verdicts: dict[str, dict[str, str]] = {}
    adjusted = holm([*(test.p_value(sets) for _, _, sets in places), *rest])
    for (one, name, sets), p in zip(places, adjusted, strict=False):
        if p <= alpha:
            word = "better" if test.estimate(sets) > 0 else "worse"
            verdicts.setdefault(one.row, {})[name] = word
    return verdicts


def of_domain(effects: Effects, domain: str) -> Effects:
    """Return the effects on the sets of one domain."""
    return {name: one for name, one in effects.items() if name[0] == domain}


def judged_effect(one: Effect, p: float, p_equal: float, alpha: float, test: SetTest) -> Effect:
    """Return the row with its verdict from p-values after Holm.

    A row that has failed on a set without an effect there is neither better nor equal. One beside
    which the baseline has diverged is neither worse nor equal.
    """
    verdict = verdict_of(one.by_set, p, p_equal, alpha, test)
    if one.without_effect and verdict in ("better", "equal"):
        verdict = "undecided"
    if one.base_failed and verdict in ("worse", "equal"):
        verdict = "undecided"
    return replace(one, holm=p, holm_equal=p_equal, verdict=verdict)


def verdict_of(effects: Effects, p: float, p_equal: float, alpha: float, test: SetTest) -> str:
    """Return better, worse, equal within the margin, undecided, or too few sets or seeds."""
    if test.smallest_p(effects) > alpha:
        return too_few(test)
    if p <= alpha:
        return "better" if test.estimate(effects) > 0 else "worse"
    return "equal" if p_equal <= alpha else "undecided"


def least_seen(found: Sequence[Effect]) -> float | None:
    """Return the median of the effects that would have been seen; None: none would.

    It is over the rows that have run on most sets. A row that nothing is random in says nothing.
    """
    most = max((len(one.by_set) for one in found), default=0)
    full = [one.detectable for one in found if len(one.by_set) == most]
    some = [inf if least is None else least for least in full if least != 0]
    middle = float(np.median(some)) if some else inf
    return None if middle == inf else middle
