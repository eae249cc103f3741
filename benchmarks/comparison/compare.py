"""Compare the rows of a table with a baseline: by column, and over data sets.

Tests on single data sets are corrected by families, so that a loss that joins changes no other.
"""

from collections.abc import Sequence
from dataclasses import replace

from contrastbench.benchmarks.comparison import Verdict
from contrastbench.benchmarks.comparison.over_sets import OverSets, over_sets
from contrastbench.benchmarks.comparison.places import UNTESTED, Comparison, compare_cell
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm
from contrastbench.benchmarks.comparison.verdicts import Verdicts, verdicts_of
from contrastbench.benchmarks.tables.controls import CONTROLS
from contrastbench.benchmarks.tables.resolved import Line, Resolved
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import UserError, unknown


def compare(resolved: Resolved, baseline: str | None = None, test: str | None = None) -> Verdicts:
    """Return all verdicts on a table's rows; without places where nothing can be compared.

    Without a test named, the table's own or the signed-rank test judges over data sets. The
    corrected t-test judges on single ones.

    Raises:
        UserError: no such row or test, or nothing in the table can be run.
    """
    if test is not None and test not in SET_TESTS:
        raise unknown("test", test, SET_TESTS)
    base = baseline_row(resolved, baseline)
    places = compare_rows(resolved, base)
    over = over_sets_of(resolved, base, places, test or resolved.table.test or "wilcoxon")
    beside = [line.name for line in resolved.lines if line.row.beside]
    lines = (line for line in resolved.lines if line.name in resolved.table.asked)
    given = [line.name for line in lines if resolved.has_no_choice(line)]
    return verdicts_of(resolved.table, base.name, places, over, beside, given)


def baseline_row(resolved: Resolved, name: str | None = None) -> Line:
    """The row of that name.

    By default the first with InfoNCE, or else the first that is no control.
    """
    lines = {line.name: line for line in resolved.lines if line.cells}
    if not lines:
        raise UserError(f"table {resolved.table.name} has only quoted rows: choose another table")
    if name is not None and name not in lines:
        raise unknown(f"row of {resolved.table.name} that can be run", name, lines)
    if name is not None:
        return lines[name]
    contestants = [line for line in lines.values() if not line.control] or list(lines.values())
    return next((line for line in contestants if line.row.loss == "infonce"), contestants[0])


def compare_rows(resolved: Resolved, base: Line) -> list[Comparison]:
    """Every runnable row but the baseline, in every column where both have a shared seed.

    Also where a row has failed, or the baseline has. Rows that `--loss` names come first. Losses
    that joined, the other losses, and the controls are families of tests.
    """
    asked = resolved.table.asked
    comparisons = [
        compare_cell(resolved, base, line, column)
        for line in sorted(resolved.lines, key=lambda line: line.name not in asked)
        for column in base.cells
        if line is not base and column in line.cells
    ]
    comparisons = [place for place in comparisons if place.seeds or place.failure or place.why]
    to_come = places_to_come(resolved, base, comparisons)
    waiting = {row for row, _ in to_come}
    families: dict[str, list[Comparison]] = {"joined": [], "listed": [], "controls": []}
    for place in comparisons:
        families[place.family_name].append(replace(place, waiting=place.row in waiting))
    more = {"listed": len(to_come)}
    return [
        place for name, family in families.items() for place in decide(family, more.get(name, 0))
    ]


def places_to_come(
    resolved: Resolved, base: Line, comparisons: Sequence[Comparison]
) -> set[tuple[str, str]]:
    """Return the rows and columns that a table lists and that nothing is known of yet.

    They are corrected for from the beginning, so that no verdict is lost as results arrive. Copies
    and columns without the baseline's results are not among them.
    """
    known = {(c.row, c.column) for c in comparisons if c.t.p is not None or c.is_final}
    lines = (line for line in resolved.lines if is_listed(resolved.table, line, base))
    return {
        (line.name, column)
        for line in lines
        for column, cell in line.cells.items()
        if not cell.same_as and column in base.cells and base.cells[column].ok
    } - known


def is_listed(table: Table, line: Line, base: Line) -> bool:
    """Return whether a row is one of the losses that a table compares with the baseline."""
    return not (line is base or line.control or line.name in table.joined)


def decide(family: Sequence[Comparison], to_come: int = 0) -> list[Comparison]:
    """Return the comparisons of a family with verdicts by Holm's correction.

    Those to come are corrected for as well: they have a p of 1 so far. A row that is another one by
    algebra is tested once.
    """
    there = {(place.row, place.column) for place in family}
    family = [
        replace(place, t=UNTESTED, why=place.why or f"tested as {place.same_as}")
        if (place.same_as, place.column) in there
        else place
        for place in family
    ]
    known = [place.t.p for place in family if place.t.p is not None]
    tests = max(1, len(known) + to_come)
    adjusted = iter(holm([*known, *[1.0] * to_come]))
    family = [replace(place, family=tests, level=ALPHA / tests) for place in family]
    return [with_verdict(place, None if place.t.p is None else next(adjusted)) for place in family]


def with_verdict(place: Comparison, adjusted: float | None) -> Comparison:
    """Return the verdict better, worse or undecided; too few pairs stay untested.

    A row that diverged with some seeds is not better by those that are left, nor worse than a
    baseline that did.
    """
    if adjusted is None or place.difference is None:
        return replace(place, why=place.why or place.t.why)  # failed, or untested
    better = place.difference > 0
    verdict = Verdict.BETTER if better else Verdict.WORSE
    if adjusted > ALPHA or (place.lost if better else place.base_lost):  # by those that are left
        verdict = Verdict.UNDECIDED
    return replace(place, holm=adjusted, verdict=verdict)


def over_sets_of(
    resolved: Resolved, base: Line, comparisons: Sequence[Comparison], test: str
) -> OverSets:
    """Return the effects of a table's rows over data sets, controls apart.

    Against a baseline that is itself untrained, or a control, nothing is known of how rows must
    come out, and no training gains anything: effects are points, and each row is a contestant.
    """
    usual = not (base.control or base.is_untrained)
    untrained = [line.name for line in resolved.lines if usual and line.is_untrained]
    musts = {
        line.name: CONTROLS[line.control or "untrained"].must
        for line in resolved.lines
        if usual and (line.control or line.name in untrained)
    }
    expected = [
        line.name
        for line in resolved.lines
        if line.name not in musts
        and is_listed(resolved.table, line, base)
        and any(not cell.same_as for cell in line.cells.values())
    ]
    has_run = {(cell.row.name, cell.column) for cell in resolved.cells if cell.ok or cell.failed}
    rows, columns = ({*names} for names in zip(*has_run, strict=True)) if has_run else ((), ())
    return replace(
        over_sets(comparisons, untrained, musts, SET_TESTS[test], expected),
        without_results=[
            line.name
            for line in resolved.lines
            if line.cells and line.name not in musts and line.name not in rows
        ],
        not_compared=[
            name
            for name in resolved.table.columns
            if name in columns and not any(place.column == name for place in comparisons)
        ],
    )
