"""Verdicts over data sets: effects of all rows, tested and corrected together."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from contrastbench.benchmarks.comparison.effects import (
    MARGIN,
    POINTS_MARGIN,
    SAME,
    SAME_LOSS,
    SAME_SO_FAR,
    SIGNED_RANK,
    Effect,
    Gains,
    OverSets,
    effects_by_set,
    gains_of,
    too_few,
)
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import Effects, SetTest
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm


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
    effects = {one.row: one for one in found if one is not None}
    tested = {*effects} - {*controls} if gains or not left_out else ()
    losses = {row: mine for row, mine in rows.items() if row in tested}
    same_so_far = {row for row, mine in losses.items() if all_same(mine) and is_waiting(mine)}
    to_come = sum(row not in effects or row in same_so_far for row in expected)
    judged = contestants(effects, losses, same_so_far, to_come, alpha, test)
    judged += [
        control_effect(one, rows[row], controls[row], alpha, test)
        for row, one in effects.items()
        if row in controls
    ]
    return OverSets(judged, gains, left_out, margin, alpha, test, to_come)


def contestants(
    effects: Mapping[str, Effect],
    losses: Mapping[str, Sequence[Comparison]],
    same_so_far: Container[str],
    to_come: int,
    alpha: float,
    test: SetTest,
) -> list[Effect]:
    """Return losses with their verdicts: those that joined, those of the table, and copies."""
    originals = {row: original_of(row, losses) for row in losses}
    tested = [effects[row] for row in losses if originals[row] == row and row not in same_so_far]
    joined = decided_effects([one for one in tested if one.joined], alpha, test)
    listed = decided_effects([one for one in tested if not one.joined], alpha, test, to_come)
    same = [replace(effects[row], verdict=SAME_SO_FAR) for row in losses if row in same_so_far]
    same += [replace(effects[row], verdict=SAME_LOSS) for row in losses if not originals[row]]
    return [*with_copies([*joined, *listed], originals), *same]


def original_of(row: str, losses: Mapping[str, Sequence[Comparison]]) -> str:
    """Return the first row that is the same loss on each set; itself, or nothing: the baseline.

    A row that lacks results where it is a loss of its own is no copy.
    """
    if is_waiting(losses[row]):
        return row
    if all_same(losses[row]):
        return ""
    own = originals_by_column(row, losses[row])
    return next(name for name, mine in losses.items() if originals_by_column(name, mine) == own)


def is_waiting(mine: Iterable[Comparison]) -> bool:
    """Return whether a row lacks results in a column where it is a loss of its own."""
    return any(one.waiting for one in mine)


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
    base_failed = {one.data_set for one in mine if one.base_lost}
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
