"""Check which selection a table can have.

`paper` takes the parameters that the paper names; most were chosen by the very score that is
reported. `validation` asks the search of each place, see `searches`: the same number of trials for
every row, with seeds of their own, and the best is run with other seeds. Brings no torch.
"""

from collections.abc import Sequence

from contrastbench.benchmarks.tables.table import Selection, Table
from contrastbench.errors import UserError, unknown

SELECTIONS = (Selection.PAPER.value, Selection.VALIDATION.value)


def check_selection(table: Table, selection: str | None, seeds: Sequence[int] = ()) -> Selection:
    """Return the selection that is asked for, or the table's own; `seeds` must not choose in it.

    Raises:
        UserError: it cannot be made.
    """
    if selection not in (None, *SELECTIONS):
        raise unknown("selection", selection or "", SELECTIONS)
    shared = sorted(set(seeds) & set(table.tuning_seeds))
    if shared:
        raise UserError(
            f"seeds {shared} choose the parameters, so they cannot confirm them: give others "
            "with --seeds"
        )
    if selection != Selection.VALIDATION and table.selection != Selection.VALIDATION:
        return table.selection
    if selection == Selection.PAPER:
        raise UserError(
            f"{table.name} has no published parameters, it chooses them on validation data: "
            "leave --selection out"
        )
    has_grid = any(row.grid or row.grid_by_column for row in table.rows)
    if not (table.budget.search or has_grid):
        raise UserError(
            f"{table.name} declares no grid to choose from: give its rows a grid, or --selection "
            "paper"
        )
    return Selection.VALIDATION
