"""Compare the rows of a table with a baseline row by column, and correct the tests by families."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from contrastbench.benchmarks.comparison.places import UNTESTED, Comparison, compare_cell
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm
from contrastbench.benchmarks.tables.resolved import Line, Resolved
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import UserError, unknown

FAMILIES = ("joined", "listed", "controls")  # each is corrected by itself


def compare_rows(
    resolved: Resolved, baseline: str | None = None, test: str | None = None
) -> list[Comparison]:
    """Every runnable row but the baseline, in every column where both have a shared seed.

    Also where a row has failed, or the baseline has. Rows that `--loss` names come first. Losses
    that joined, the other losses, and the controls are families of tests.

    Raises:
        UserError: no such row or test, or nothing in the table can be run.
    """
    if test is not None and test not in SET_TESTS:
        raise unknown("test", test, SET_TESTS)
    base, asked = baseline_row(resolved, baseline), resolved.table.asked
    comparisons = [
        compare_cell(resolved, base, line, column)
        for line in sorted(resolved.lines, key=lambda line: line.name not in asked)
        for column in base.cells
        if line is not base and column in line.cells
    ]
    comparisons = [one for one in comparisons if one.seeds or one.failure or one.why]
    to_come = places_to_come(resolved, base, comparisons)
    families: dict[str, list[Comparison]] = {name: [] for name in FAMILIES}
    for one in comparisons:
        mine = any(row == one.row for row, _ in to_come)
        families[family_of(one)].append(replace(one, waiting=mine))
    more = {"listed": len(to_come)}
    return [one for name, family in families.items() for one in decide(family, more.get(name, 0))]


def places_to_come(
    resolved: Resolved, base: Line, comparisons: Sequence[Comparison]
) -> set[tuple[str, str]]:
    """Return the rows and columns that a table lists and that nothing is known of yet.

    They are corrected for from the beginning, so that no verdict is lost as results arrive. Copies
    and columns without the baseline's results are not among them.
    """
    known = {(one.row, one.column) for one in comparisons if one.t.p is not None or one.is_final}
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


def family_of(one: Comparison) -> str:
    """Return the family of tests that a comparison is corrected in: a join changes no other."""
    return "controls" if one.control else "joined" if one.joined else "listed"


def without_test(one: Comparison) -> Comparison:
    """Return the comparison of a row that is another one by algebra, which is tested once."""
    return replace(one, t=UNTESTED, why=one.why or f"tested as {one.same_as}")


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


def decide(family: Sequence[Comparison], to_come: int = 0) -> list[Comparison]:
    """Return the comparisons of a family with verdicts by Holm's correction.

    Those to come are corrected for as well: they have a p of 1 so far.
    """
    there = {(one.row, one.column) for one in family}
    family = [without_test(one) if (one.same_as, one.column) in there else one for one in family]
    known = [one.t.p for one in family if one.t.p is not None]
    tests = max(1, len(known) + to_come)
    adjusted = iter(holm([*known, *[1.0] * to_come]))
    family = [replace(one, family=tests, level=ALPHA / tests) for one in family]
    return [with_verdict(one, None if one.t.p is None else next(adjusted)) for one in family]


def with_verdict(one: Comparison, adjusted: float | None) -> Comparison:
    """Return the verdict better, worse or undecided; too few pairs stay untested.

    A row that diverged with some seeds is not better by those that are left, nor worse than a
    baseline that did.
    """
    if adjusted is None or one.difference is None:
        return replace(one, why=one.why or one.t.why)  # failed, or untested
    verdict = "better" if one.difference > 0 else "worse"
    by_those_left = one.lost if verdict == "better" else one.base_lost
    if adjusted > ALPHA or by_those_left:
        verdict = "undecided"
    return replace(one, holm=adjusted, verdict=verdict)


def verdict_counts(comparisons: Sequence[Comparison]) -> dict[str, Counter[str]]:
    """Verdicts of each row."""
    rows: dict[str, Counter[str]] = {}
    for comparison in comparisons:
        rows.setdefault(comparison.row, Counter())[comparison.verdict] += 1
    return rows
