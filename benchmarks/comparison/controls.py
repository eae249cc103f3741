"""The controls of a comparison: how each must come out, and whether it did."""

from collections.abc import Sequence

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.effects import OverSets, over_sets
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.tables.controls import CONTROLS, Must
from contrastbench.benchmarks.tables.table import Row, Table


def over_sets_of(
    table: Table, comparisons: Sequence[Comparison], alpha: float = ALPHA, test: str | None = None
) -> OverSets:
    """Return the effects of a table's rows over data sets, controls apart."""
    untrained = [row.name for row in table.rows if is_untrained(table, row)]
    musts = {row.name: must(row) for row in table.rows if row.control or row.name in untrained}
    judge = SET_TESTS[test or "wilcoxon"]
    return over_sets(comparisons, untrained, musts, alpha=alpha, test=judge)


def must(row: Row) -> Must:
    """Return how a control has to come out; a row without a training is one where it is listed."""
    return CONTROLS[row.control or "untrained"].must


def is_untrained(table: Table, row: Row) -> bool:
    """Return whether the row has no training: the untrained encoder or the raw input."""
    column = next((name for name in table.columns if table.runnable(row, name)), None)
    return column is not None and not table.experiment(row, column).trained
