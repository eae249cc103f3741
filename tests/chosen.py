"""What validation data choose for a place, for tests."""

from pathlib import Path

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.tables import selections
from contrastbench.benchmarks.tables.table import Row, Selection, Table

NOWHERE = Path("no records")


def trials(table: Table, row: Row, column: str, results: Path = NOWHERE) -> list[Experiment]:
    """Return the trials of a place that are known by the records, or before any record."""
    found = selections.search_of(table, row, column, results)
    return selections.experiments(table, row, column, found.settings)


def chosen(table: Table, row: Row, column: str, results: Path) -> Experiment | str:
    """Return the experiment that fills the place, or why that is not known."""
    choice = selections.choose(table, row, column, Selection.VALIDATION, results)
    return choice.why or selections.experiments(table, row, column, choice.settings)[0]
