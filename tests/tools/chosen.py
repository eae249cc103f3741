"""What validation data choose for a place, for tests."""

from pathlib import Path

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.tables.resolved import decide
from contrastbench.benchmarks.tables.schema import Row
from contrastbench.benchmarks.tables.table import Selection, Table

NOWHERE = Path("no records")


def trials(table: Table, row: Row, column: str, results: Path = NOWHERE) -> list[Experiment]:
    """Return the trials of a place that are known by the records, or before any record."""
    found = decide(table.places[row.name, column], Selection.VALIDATION, results)
    return [*found.trials]


def chosen(table: Table, row: Row, column: str, results: Path) -> Experiment | str:
    found = decide(table.places[row.name, column], Selection.VALIDATION, results)
    return found.choice.why or found.work
