"""Check which selection a table can have, and say how it chooses.

`paper` takes the parameters that the paper names; most were chosen by the very score that is
reported. `validation` asks the search of each place, see `searches`: the same number of trials for
every row, with seeds of their own, and the best is run with other seeds. Brings no torch.
"""

from collections.abc import Iterable, Sequence

from contrastbench.benchmarks.tables import points
from contrastbench.benchmarks.tables.searches import Choice
from contrastbench.benchmarks.tables.table import Selection, Table
from contrastbench.errors import UserError, unknown

SELECTIONS = (Selection.PAPER.value, Selection.VALIDATION.value)
RULE_OF_FOLDS = (
    "each outer fold of each seed has the best of its method's trials by the inner accuracy of its "
    "own training part, which has not seen what the fold is scored on"
)
BEST_TRIAL = "for each method and column the best of its trials by validation score"


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


def selection_rule(table: Table, choices: Iterable[Choice]) -> str:
    """Say how the parameters of rows and columns are chosen."""
    if table.has_points:
        return f"{points.RULE}; {table.budget.trials or points.BUDGET} candidates for each method"
    found = list(choices)
    rules = [RULE_OF_FOLDS] * any(one.nested for one in found)
    if any(one.best_of for one in found):
        seeds = ", ".join(map(str, table.tuning_seeds))
        rules.append(f"{BEST_TRIAL} over seeds {seeds}, which no shown number is of")
    search, count = table.budget.search or "grid", table.budget.trials or "as many"
    return "; ".join([*rules, f"{search} search with {count} trials for each method"])
