"""Verdicts over data sets: effects of all rows, tested and corrected together."""

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from contrastbench.benchmarks.comparison.effects import (
    MARGIN,
    POINTS_MARGIN,
    SAME_LOSS,
    SAME_SO_FAR,
    SIGNED_RANK,
    Effect,
    Gains,
    OverSets,
    Part,
    effects_by_set,
    gains_of,
    too_few,
)
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS, Effects, SetTest
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm


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
    gains, left_out = gains_of([one for one in comparisons if one.row in untrained])
    margin = MARGIN if gains else POINTS_MARGIN
    rows: dict[str, list[Comparison]] = {}
    for one in comparisons:
        rows.setdefault(one.row, []).append(one)
    found = [effect(row, mine, gains, margin, test) for row, mine in rows.items()]
    effects = {one.row: one for one in found if one is not None}
    tested = {*effects} - {*controls} if gains or not left_out else ()
    losses = {row: mine for row, mine in rows.items() if row in tested}
    same_so_far = {row for row, mine in losses.items() if all_same(mine) and is_waiting(mine)}
    to_come = sum(row not in effects or row in same_so_far for row in expected)
    judged = contestants(effects, losses, same_so_far, to_come, test)
    judged += [
        control_effect(one, rows[row], controls[row], test)
        for row, one in effects.items()
        if row in controls
    ]
    return OverSets(judged, gains, left_out, margin, test, to_come)


def contestants(
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
    found = [replace(effects[rows[0]], also=tuple(rows[1:])) for rows in alike.values()]
    copies = [one for one in found if one.row in same_so_far or all_same(losses[one.row])]
    tested = [one for one in found if one not in copies]
    joined = decided_effects([one for one in tested if one.joined], test)
    listed = decided_effects([one for one in tested if not one.joined], test, to_come)
    words = {True: SAME_SO_FAR, False: SAME_LOSS}
    same = [replace(one, verdict=words[one.row in same_so_far]) for one in copies]
    return [*joined, *listed, *sorted(same, key=lambda one: one.verdict, reverse=True)]


def runs_of(row: str, mine: Sequence[Comparison]) -> Hashable:
    """Return what losses have in common that are the same runs on each set.

    A row that lacks results where it is a loss of its own is none. One that joined is a copy of
    such ones alone.
    """
    if is_waiting(mine):
        return row
    if all_same(mine):
        return mine[0].joined, ""
    return mine[0].joined, frozenset((one.column, one.runs or one.same_as or row) for one in mine)


def is_waiting(mine: Iterable[Comparison]) -> bool:
    """Return whether a row lacks results in a column where it is a loss of its own."""
    return any(one.waiting for one in mine)


def all_same(mine: Iterable[Comparison]) -> bool:
    """Return whether a row is the baseline's loss wherever it has run."""
    return all(one.same for one in mine)


def control_effect(one: Effect, mine: Sequence[Comparison], must: str, test: SetTest) -> Effect:
    """Return a control with its verdict over all sets, also those on which training gains nothing.

    Only these sets can show that the comparison sees nothing at all.
    """
    everywhere, _ = effects_by_set(mine, {})
    if not everywhere:
        return replace(one, verdict=too_few(test), must=must, everywhere=one.estimate)
    points, p = test.estimate(everywhere), one.holm
    if must == "equal":
        (one,) = decided_effects([one], test)
        verdict, p = one.verdict, one.holm
    elif must == "below":
        verdict = "below" if points < 0 else "not below"
    else:
        p = test.p_value(everywhere)
        verdict = verdict_of(everywhere, p, 1.0, test)
    return replace(one, holm=p, verdict=verdict, must=must, everywhere=points)


def effect(
    row: str, mine: Sequence[Comparison], gains: Gains, margin: float, test: SetTest
) -> Effect | None:
    """Return one row's effect; None where it meets no set that counts."""
    by_set, failed = effects_by_set(mine, gains)
    if not by_set:
        return None
    base_failed = {one.data_set for one in mine if one.base_lost}
    return Effect(
        row,
        by_set,
        len(failed),
        test.estimate(by_set),
        test.interval(by_set, ALPHA),
        {
            name: part_of(sets, margin, test, bool(base_failed & sets.keys()))
            for name, sets in parts_of(by_set, test).items()
        },
        SET_TESTS["t"].interval(by_set, ALPHA),
        joined=any(one.joined for one in mine),
        without_effect=len(failed - by_set.keys()),
        base_failed=len(base_failed & by_set.keys()),
    )


def parts_of(effects: Effects, test: SetTest) -> dict[str, Effects]:
    """Return the sets that a test is over: those of each domain, where it takes sets as given.

    Effects of opposite signs cancel in the mean over domains.
    """
    if test.units == "sets":
        return {"": effects}
    domains = dict.fromkeys(domain for domain, _ in effects)
    return {name: {key: one for key, one in effects.items() if key[0] == name} for name in domains}


def part_of(sets: Effects, margin: float, test: SetTest, base_failed: bool) -> Part:
    """Return the effect over some sets, not judged yet."""
    barred = frozenset({"worse", "equal"} if base_failed else ())
    interval, p = test.interval(sets, ALPHA), test.p_value(sets)
    return Part(sets, test.estimate(sets), interval, p, test.p_equal(sets, margin), barred)


def decided_effects(found: Sequence[Effect], test: SetTest, to_come: int = 0) -> list[Effect]:
    """Return the rows with verdicts, corrected after Holm; best first.

    All parts of all rows are one family of tests, with those that have yet to run, so that no
    verdict is lost as they do. That a row is equal in all its parts is one test, whose p is the
    largest of them: these are a family of the rows.
    """
    losses, names = len(found) + to_come, {name for one in found for name in one.parts}
    parts = [part for one in found for part in one.parts.values()]
    different = iter(corrected([part.p for part in parts], losses * len(names)))
    equal = iter(corrected([part.p_equal for part in parts], losses * len(names)))
    together = corrected([one.p_equal for one in found], losses)
    level = ALPHA / max(1, losses * len(names))
    seen = [
        judged_effect(
            one, [(next(different), next(equal)) for _ in one.parts], all_equal, level, test
        )
        for one, all_equal in zip(found, together, strict=True)
    ]
    return sorted(seen, key=lambda one: -one.estimate)


def corrected(ps: Sequence[float], tests: int) -> list[float]:
    """Return p-values after Holm's correction for so many tests; those to come have 1 so far."""
    return holm([*ps, *[1.0] * (tests - len(ps))])[: len(ps)]


def judged_effect(
    one: Effect, ps: Sequence[tuple[float, float]], p_equal: float, level: float, test: SetTest
) -> Effect:
    """Return the row with its verdict from p-values after Holm.

    A row that has failed on a set without an effect there is neither better nor equal. One beside
    which the baseline has diverged is neither worse nor equal.

    Args:
        one: the row.
        ps: of each part: of no effect, and of one beyond the margin.
        p_equal: of one beyond the margin in some part.
        level: that of the first verdict.
        test: of a part.
    """
    judged = {
        name: replace(part, verdict=part_verdict(part, p, q, test))
        for (name, part), (p, q) in zip(one.parts.items(), ps, strict=True)
    }
    verdict = verdict_over([part.verdict for part in judged.values()], p_equal <= ALPHA)
    barred = {"better", "equal"} if one.without_effect else set[str]()
    barred |= {"worse", "equal"} if one.base_failed else set()
    seen = [test.detectable(part.sets, level) for part in judged.values()]
    return replace(
        one,
        parts=judged,
        holm=min(p for p, _ in ps),
        holm_equal=p_equal,
        detectable=None if None in seen else max(filter(None, seen), default=0.0),
        verdict="undecided" if verdict in barred else verdict,
    )


def part_verdict(part: Part, p: float, p_equal: float, test: SetTest) -> str:
    """Return the verdict of one part, unless failures bar it."""
    verdict = verdict_of(part.sets, p, p_equal, test)
    return "undecided" if verdict in part.barred else verdict


def verdict_over(words: Sequence[str], equal: bool) -> str:
    """Return the verdict that those of the parts make.

    >>> verdict_over(["better", "undecided"], False), verdict_over(["better", "worse"], False)
    ('better', 'mixed')
    >>> verdict_over(["equal", "undecided"], False), verdict_over(["equal", "undecided"], True)
    ('undecided', 'equal')
    """
    shown = {*words} & {"better", "worse"}
    if shown:
        return shown.pop() if len(shown) == 1 else "mixed"
    if equal:
        return "equal"
    return words[0] if len({*words}) == 1 and words[0] != "equal" else "undecided"


def verdict_of(effects: Effects, p: float, p_equal: float, test: SetTest) -> str:
    """Return better, worse, equal within the margin, undecided, or too few sets or seeds."""
    if test.smallest_p(effects) > ALPHA:
        return too_few(test)
    if p <= ALPHA:
        return "better" if test.estimate(effects) > 0 else "worse"
    return "equal" if p_equal <= ALPHA else "undecided"
