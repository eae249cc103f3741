"""The controls of a comparison: how each must come out, and whether it did."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from contrastbench.benchmarks.comparison.compare import baseline_row, is_listed
from contrastbench.benchmarks.comparison.effects import Effect, OverSets, too_few
from contrastbench.benchmarks.comparison.over_sets import over_sets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS
from contrastbench.benchmarks.comparison.signed_rank import DIGITS
from contrastbench.benchmarks.tables.controls import CONTROLS, Must
from contrastbench.benchmarks.tables.resolved import Line, Resolved

FEW_SETS = 5  # data sets, up to which the controls are looked at set by set


@dataclass(frozen=True)
class Controls:
    """Whether the controls came out as they must, over data sets and, of few, set by set."""

    wrong: Mapping[str, Sequence[Effect]]  # that did not, by how they must come out
    counts: Counter[str]  # those that have a verdict, by how they must come out
    blind: Mapping[str, Sequence[str]]  # columns on which rows are no worse than the baseline
    below: Sequence[str]  # rows below it on each set, where nothing is judged over sets


def controls_of(over: OverSets, comparisons: Sequence[Comparison]) -> Controls:
    """Return how the controls of a comparison came out."""
    controls = [one for one in over.effects if one.control]
    judged = [one for one in controls if one.verdict != too_few(over.test)]
    wrong: dict[str, list[Effect]] = {}
    for one in judged:
        if not one.came_out:
            wrong.setdefault(one.must, []).append(one)
    worse = [one.row for one in controls if one.must == "worse"]
    seen = [one for one in comparisons if one.row in worse and one.difference is not None]
    blind: dict[str, list[str]] = {}
    for place in seen if not judged or over.sets <= FEW_SETS else ():
        if round(place.difference or 0.0, DIGITS) >= 0:
            blind.setdefault(place.column, []).append(place.row)
    below = worse if seen and not (judged or blind) else []
    return Controls(wrong, Counter(one.must for one in judged), blind, below)


def over_sets_of(
    resolved: Resolved,
    baseline: str,
    comparisons: Sequence[Comparison],
    test: str | None = None,
) -> OverSets:
    """Return the effects of a table's rows over data sets, controls apart.

    Without a test named it is the table's own, or the signed-rank test. Against a baseline that is
    itself untrained, or a control, nothing is known of how rows must come out, and no training
    gains anything: effects are points, and each row is a contestant.
    """
    lines = resolved.lines
    base = baseline_row(resolved, baseline)
    usual = not (base.control or is_untrained(base))
    untrained = [line.name for line in lines if usual and is_untrained(line)]
    musts = {
        line.name: expected_outcome(line)
        for line in lines
        if usual and (line.control or line.name in untrained)
    }
    expected = [
        line.name
        for line in lines
        if line.name not in musts and is_listed(resolved.table, line, base) and is_distinct(line)
    ]
    judge = SET_TESTS[test or resolved.table.test or "wilcoxon"]
    found = over_sets(comparisons, untrained, musts, judge, expected)
    return replace(
        found,
        without_results=without_results(resolved, {*musts}),
        not_compared=not_compared(resolved, {one.column for one in comparisons}),
    )


def not_compared(resolved: Resolved, compared: Container[str]) -> list[str]:
    """Return the columns with results that are compared with nothing."""
    return [
        name
        for name in resolved.table.columns
        if name not in compared
        and any(line.cells[name].has_run for line in resolved.lines if name in line.cells)
    ]


def without_results(resolved: Resolved, controls: Container[str]) -> list[str]:
    """Return the losses of which no cell has a record."""
    return [
        line.name
        for line in resolved.lines
        if line.cells
        and line.name not in controls
        and not any(cell.has_run for cell in line.cells.values())
    ]


def expected_outcome(line: Line) -> Must:
    """Return how a control has to come out; a row without a training is one where it is listed."""
    return CONTROLS[line.control or "untrained"].must


def is_distinct(line: Line) -> bool:
    """Return whether the row is a loss of its own in some column, and no copy in all of them."""
    return any(not cell.same_as for cell in line.cells.values())


def is_untrained(line: Line) -> bool:
    """Return whether the row has no training: the untrained encoder or the raw input."""
    return any(not cell.work.trained for cell in line.cells.values())
