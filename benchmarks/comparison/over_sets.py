"""The answer over data sets: the effects of all rows, tested, corrected and judged together.

Each domain counts alike. What the test takes as drawn, sets or seeds, is its own.
"""

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from statistics import fmean, median
from typing import NamedTuple

from contrastbench.benchmarks.comparison import DECIDED, DIFFERENT, Verdict
from contrastbench.benchmarks.comparison.effects import Gains, effects_by_set, gains_of
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import (
    SET_TESTS,
    Effects,
    Part,
    SetName,
    SetTest,
    grouped,
    part_of,
    sets_by_domain,
    too_few,
)
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm

SIGNED_RANK = SET_TESTS["wilcoxon"]


class Scale(NamedTuple):
    """The unit of effects, its decimals, and the margin within which they are equal."""

    unit: str
    decimals: int
    margin: float


POINTS = Scale("points", 1, 1.0)  # where no control says what training gains
SHARES = Scale("% of the training gain", 0, 10.0)


@dataclass(frozen=True)
class Effect:
    """One row's effects on the sets that count, their mean, and the verdict that parts make.

    Equal means equal in each part. Better, or worse, means so in some and in none the opposite.
    """

    row: str
    by_set: Effects
    by_domain: Mapping[str, float]  # the mean effect over the sets of each domain
    failed: int  # sets on which a training has failed
    estimate: float
    interval: tuple[float, float]  # at 95 %, before the correction for many rows
    parts: Mapping[str, Part]  # by domain
    over_sets: tuple[float, float]  # the interval where sets are drawn, not seeds
    p: float  # of no effect in the part that is shown clearest
    p_equal: float  # of an effect beyond the margin in some part
    joined: bool  # the row joined by `--loss`
    without_effect: int  # sets on which it has failed and has no effect, which may be any
    base_failed: frozenset[SetName]  # on which the baseline has diverged with some seeds
    name: str = ""  # the row with all that are the same runs
    also: Sequence[str] = ()  # those
    holm: float = 1.0  # of the part that is shown clearest
    holm_equal: float = 1.0
    detectable: float | None = None  # found four times in five in each part, at the verdict's level
    verdict: Verdict = Verdict.UNDECIDED
    decided: Mapping[str, Verdict] = field(default_factory=dict)  # by domain, of several
    is_small: bool = False  # better or worse, and shown to be so within the margin
    untrained_in: Sequence[str] = ()  # domains in which it loses more than all that training gains
    is_copy: bool = False  # by algebra another row, which is tested in its place
    must: str = ""  # of a control, which is no contestant: how it has to come out
    came_out: bool = False  # a control as it must: by its verdict, or by its sign for `below`


@dataclass(frozen=True)
class OverSets:
    """All rows against a baseline over data sets."""

    effects: Sequence[Effect] = ()
    contestants: Sequence[Effect] = ()  # rows that are no controls, best first, and then copies
    listed: Sequence[Effect] = ()  # those that did not join
    tested: Sequence[Effect] = ()  # of these, or else of those that joined, with an own verdict
    fewer: Sequence[Effect] = ()  # listed losses whose verdict is on fewer sets than others'
    gains: Gains = field(default_factory=dict)  # of the sets that count; empty: effects are points
    unit: str = ""
    decimals: int = 0
    margin: float = 0.0
    left_out: Sequence[str] = ()  # sets or columns: training gains too little
    nothing_counts: bool = False  # training gains nothing clear on any: no verdict is over sets
    test: SetTest = SIGNED_RANK
    on_these: bool = False  # verdicts hold on these data sets, and nothing is said of others
    sets: int = 0  # that count
    most_seeds: int = 0  # that a loss has on a set
    domains: Sequence[str] = ()  # that some row has an effect in
    decides: bool = False  # so many sets or seeds can give any verdict at all
    level: float = ALPHA  # of the first verdict by Holm's correction
    least_seen: float | None = 0.0  # the median of effects that would have been seen, see there
    to_come: int = 0  # losses that are listed and have no result; Holm's correction counts them
    without_results: Sequence[str] = ()  # rows that nothing is known of
    not_compared: Sequence[str] = ()  # columns that only one side has run on

    @property
    def tells_of_sets(self) -> bool:
        """Return whether an effect has an interval over sets."""
        return self.on_these and any(isfinite(effect.over_sets[0]) for effect in self.effects)

    def seen_by(self, joining: int) -> float | None:
        """Return as `least_seen` what so many losses would have seen that join, and no others."""
        level = ALPHA / max(1, joining * count_tests(self.tested[:1], 0))
        found = [detectable(effect.parts, level, self.test) for effect in self.tested]
        pairs = zip(self.tested, found, strict=True)
        return least_seen([replace(effect, detectable=least) for effect, least in pairs])


def over_sets(
    comparisons: Sequence[Comparison],
    untrained: Sequence[str],
    controls: Mapping[str, str] | None = None,
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
        test: of one row's effects.
        expected: the losses that the table lists. Those without a result count in the correction
            too, so that no verdict is lost as results arrive.
    """
    controls = controls or {}
    gains, left_out = gains_of([place for place in comparisons if place.row in untrained])
    scale = SHARES if gains else POINTS
    rows: dict[str, list[Comparison]] = {}
    for place in comparisons:
        rows.setdefault(place.row, []).append(place)
    measured_rows = [effect(row, mine, gains, scale.margin, test) for row, mine in rows.items()]
    effects = {measured.row: measured for measured in measured_rows if measured is not None}
    tested = {*effects} - {*controls} if gains or not left_out else ()
    losses = {row: mine for row, mine in rows.items() if row in tested}
    same_so_far = {row for row, mine in losses.items() if all_same(mine) and is_waiting(mine)}
    to_come = sum(row not in effects or row in same_so_far for row in expected)
    contestants = judged_losses(effects, losses, same_so_far, to_come, test)
    if gains:
        contestants = [replace(loss, untrained_in=untrained_in(loss)) for loss in contestants]
    judged = [
        control_effect(measured, rows[row], controls[row], test)
        for row, measured in effects.items()
        if row in controls
    ]
    return answer(contestants, judged, gains, left_out, test, to_come)


def answer(
    contestants: Sequence[Effect],
    controls: Sequence[Effect],
    gains: Gains,
    left_out: Sequence[str],
    test: SetTest,
    to_come: int,
) -> OverSets:
    """Return all that is said of rows whose effects are judged."""
    effects, scale = [*contestants, *controls], SHARES if gains else POINTS
    listed = [loss for loss in contestants if not loss.joined]
    tested = [loss for loss in listed or contestants if not loss.is_copy]
    sets = max((len(loss.by_set) for loss in effects), default=0)
    nothing_counts = bool(left_out) and not gains
    able = any(test.smallest_p(loss.by_set) <= ALPHA for loss in effects)
    seeds = (len(part.by_seed) for row in contestants for part in row.by_set.values())
    return OverSets(
        effects=effects,
        contestants=contestants,
        listed=listed,
        tested=tested,
        fewer=[loss for loss in tested if listed and len(loss.by_set) + loss.without_effect < sets],
        gains=gains,
        **scale._asdict(),
        left_out=left_out,
        nothing_counts=nothing_counts,
        test=test,
        on_these=test.units == "seeds",
        sets=sets,
        most_seeds=max(seeds, default=0),
        domains=list(dict.fromkeys(name for loss in effects for name in loss.by_domain)),
        decides=able and not nothing_counts,
        level=ALPHA / max(1, count_tests(tested, to_come if listed else 0)),
        least_seen=least_seen(tested),
        to_come=to_come,
    )


def count_tests(rows: Sequence[Effect], to_come: int) -> int:
    """Return how many parts of rows are tested, with those of rows that have yet to run."""
    return (len(rows) + to_come) * len({name for row in rows for name in row.parts})


def least_seen(tested: Sequence[Effect]) -> float | None:
    """Return the median of the effects that would have been seen; None: none would.

    It is over the losses that have run on most sets. One that nothing is random in says nothing;
    0: there are no others.
    """
    if all(loss.detectable == 0 for loss in tested):
        return 0.0
    most = max(len(loss.by_set) for loss in tested)
    full = [loss.detectable for loss in tested if len(loss.by_set) == most]
    some = [inf if least is None else least for least in full if least != 0]
    middle = median(some) if some else inf
    return None if middle == inf else middle


def judged_losses(
    effects: Mapping[str, Effect],
    losses: Mapping[str, Sequence[Comparison]],
    same_so_far: Container[str],
    to_come: int,
    test: SetTest,
) -> list[Effect]:
    """Return losses with their verdicts: those that joined, those of the table, and copies.

    Losses that are the same runs on each set are one line.
    """
    alike: dict[Hashable, list[str]] = {}
    for row, mine in losses.items():
        alike.setdefault(runs_of(row, mine), []).append(row)
    joint = [
        replace(effects[rows[0]], also=rows[1:], name=", ".join(rows)) for rows in alike.values()
    ]
    copies = [loss for loss in joint if loss.row in same_so_far or all_same(losses[loss.row])]
    tested = [loss for loss in joint if loss not in copies]
    joined = decided_effects([loss for loss in tested if loss.joined], test)
    listed = decided_effects([loss for loss in tested if not loss.joined], test, to_come)
    words = Verdict.SAME_LOSS, Verdict.SAME_SO_FAR
    same = [replace(loss, verdict=words[loss.row in same_so_far], is_copy=True) for loss in copies]
    return [*joined, *listed, *sorted(same, key=lambda loss: loss.verdict, reverse=True)]


def untrained_in(row: Effect) -> list[str]:
    """Return the domains in which a row is worse, and loses more than all that training gains.

    The best row without a training is at -100 %.
    """
    below = [name for name, mean in row.by_domain.items() if mean < -100]
    return [name for name in below if Verdict.WORSE in (row.verdict, row.decided.get(name))]


def runs_of(row: str, mine: Sequence[Comparison]) -> Hashable:
    """Return what losses have in common that are the same runs on each set.

    A row that lacks results where it is a loss of its own is none. One that joined is a copy of
    such ones alone.
    """
    if is_waiting(mine):
        return row
    if all_same(mine):
        return mine[0].joined, ""
    return mine[0].joined, frozenset((c.column, c.runs or c.same_as or row) for c in mine)


def is_waiting(mine: Iterable[Comparison]) -> bool:
    """Return whether a row lacks results in a column where it is a loss of its own."""
    return any(place.waiting for place in mine)


def all_same(mine: Iterable[Comparison]) -> bool:
    """Return whether a row is the baseline's loss wherever it has run."""
    return all(place.same for place in mine)


def control_effect(effect: Effect, mine: Sequence[Comparison], must: str, test: SetTest) -> Effect:
    """Return a control with its verdict over all sets, also those on which training gains nothing.

    Only these sets can show that the comparison sees nothing at all.
    """
    everywhere, _ = effects_by_set(mine, {})
    if not everywhere:
        below = must == "below" and effect.estimate < 0
        return replace(effect, verdict=too_few(test), must=must, came_out=below)
    part = part_of(everywhere, inf, test)
    if must == "equal":
        (effect,) = decided_effects([effect], test)
        verdict, p = effect.verdict, effect.holm
    elif must == "below":
        verdict, p = Verdict.BELOW if part.estimate < 0 else Verdict.NOT_BELOW, effect.holm
    else:
        verdict, p = part.verdict_by(part.p, 1.0), part.p
    return replace(effect, holm=p, verdict=verdict, must=must, came_out=verdict == must)


def effect(
    row: str, mine: Sequence[Comparison], gains: Gains, margin: float, test: SetTest
) -> Effect | None:
    """Return one row's effect; None where it meets no set that counts."""
    by_set, failed = effects_by_set(mine, gains)
    if not by_set:
        return None
    # a test of seeds takes sets as given; effects of opposite signs cancel in a mean over domains
    groups = {"": by_set} if test.units == "sets" else sets_by_domain(by_set)
    parts = {name: part_of(sets, margin, test) for name, sets in groups.items()}
    return Effect(
        row=row,
        name=row,
        by_set=by_set,
        by_domain={name: fmean(effects) for name, effects in grouped(by_set).items()},
        failed=len(failed),
        estimate=test.estimate(by_set),
        interval=test.interval(by_set, ALPHA),
        parts=parts,
        over_sets=SET_TESTS["t"].interval(by_set, ALPHA) if tell_of_sets(by_set) else (-inf, inf),
        p=min(part.p for part in parts.values()),
        p_equal=max(part.p_equal for part in parts.values()),
        joined=any(place.joined for place in mine),
        without_effect=len(failed - by_set.keys()),
        base_failed=frozenset(place.data_set for place in mine if place.base_lost),
    )


def tell_of_sets(effects: Effects) -> bool:
    """Return whether effects have a spread over sets: three that differ, two degrees of freedom."""
    differ = sum(bool(round(effect.mean, DIGITS)) for effect in effects.values())
    return differ > 2 and len(effects) - len(grouped(effects)) > 1


def detectable(parts: Mapping[str, Part], level: float, test: SetTest) -> float | None:
    """Return the effect that is found four times in five in each part; None: none is."""
    seen = [test.detectable(part.sets, level) for part in parts.values()]
    return None if None in seen else max(filter(None, seen), default=0.0)


def decided_effects(rows: Sequence[Effect], test: SetTest, to_come: int = 0) -> list[Effect]:
    """Return the rows with verdicts, corrected after Holm; best first.

    All parts of all rows are one family of tests, with those that have yet to run, so that no
    verdict is lost as they do. That a row is equal in all its parts is one test, whose p is the
    largest of them: these are a family of the rows.
    """
    tests, parts = count_tests(rows, to_come), [p for row in rows for p in row.parts.values()]
    different = iter(corrected([part.p for part in parts], tests))
    equal = iter(corrected([part.p_equal for part in parts], tests))
    together = corrected([row.p_equal for row in rows], len(rows) + to_come)
    level = ALPHA / max(1, tests)
    seen = [
        judged_effect(
            row, [(next(different), next(equal)) for _ in row.parts], all_equal, level, test
        )
        for row, all_equal in zip(rows, together, strict=True)
    ]
    return sorted(seen, key=lambda row: -row.estimate)


def corrected(ps: Sequence[float], tests: int) -> list[float]:
    """Return p-values after Holm's correction for so many tests; those to come have 1 so far."""
    return holm([*ps, *[1.0] * (tests - len(ps))])[: len(ps)]


def judged_effect(
    effect: Effect, ps: Sequence[tuple[float, float]], p_equal: float, level: float, test: SetTest
) -> Effect:
    """Return the row with its verdict from p-values after Holm.

    A row that has failed on a set without an effect there is neither better nor equal. One beside
    which the baseline has diverged is neither worse nor equal.

    Args:
        effect: the row.
        ps: of each part: of no effect, and of one beyond the margin.
        p_equal: of one beyond the margin in some part.
        level: that of the first verdict.
        test: of a part.
    """
    judged = {}
    for (name, part), (p, q) in zip(effect.parts.items(), ps, strict=True):
        word = barred(part.verdict_by(p, q), base=bool(effect.base_failed & part.sets.keys()))
        judged[name] = part._replace(verdict=word)
    words = {name: part.verdict for name, part in judged.items()}
    several = words if len(words) > 1 else {}
    base_failed = bool(effect.base_failed & effect.by_set.keys())
    together = verdict_over([*words.values()], p_equal <= ALPHA)
    verdict = barred(together, row=bool(effect.without_effect), base=base_failed)
    if verdict == Verdict.EQUAL:  # what is shown of all parts is shown of each
        judged = {name: part._replace(verdict=verdict) for name, part in judged.items()}
    return replace(
        effect,
        parts=judged,
        holm=min(p for p, _ in ps),
        holm_equal=p_equal,
        detectable=detectable(judged, level, test),
        verdict=verdict,
        decided={name: word for name, word in several.items() if word in DECIDED},
        is_small=verdict in DIFFERENT and p_equal <= ALPHA,
    )


def barred(verdict: Verdict, row: bool = False, base: bool = False) -> Verdict:
    """Return the verdict, or undecided where failures of the row, or of the baseline, forbid it."""
    forbidden = {Verdict.BETTER} if row else set()
    forbidden |= {Verdict.WORSE} if base else set()
    return Verdict.UNDECIDED if verdict in {*forbidden, Verdict.EQUAL} and forbidden else verdict


def verdict_over(words: Sequence[Verdict], equal: bool) -> Verdict:
    """Return the verdict that those of the parts make.

    >>> str(verdict_over([Verdict.BETTER, Verdict.WORSE], False))
    'mixed'
    >>> str(verdict_over([Verdict.EQUAL, Verdict.UNDECIDED], True))
    'equal'
    """
    shown = {*words} & {*DECIDED}
    if shown:
        return shown.pop() if len(shown) == 1 else Verdict.MIXED
    if equal:
        return Verdict.EQUAL
    alike = len({*words}) == 1 and words[0] != Verdict.EQUAL
    return words[0] if alike else Verdict.UNDECIDED
