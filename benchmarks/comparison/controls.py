"""Controls are rows that must come out worse than the baseline and enter no ranking."""

from collections.abc import Sequence

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.effects import OverSets, over_sets
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.tables.table import Row, Table


def over_sets_of(table: Table, comparisons: Sequence[Comparison], alpha: float = ALPHA) -> OverSets:
    """Return the effects of a table's rows over data sets, controls apart."""
    names = [row.name for row in table.rows if is_untrained(table, row)]
    return over_sets(comparisons, names, names, alpha=alpha)


def is_untrained(table: Table, row: Row) -> bool:
    """Return whether the row has no training: the untrained encoder or the raw input."""
    column = next((name for name in table.columns if table.runnable(row, name)), None)
    return column is not None and not table.experiment(row, column).trained
