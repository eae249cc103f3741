"""Check which selection a table can have, and say how it chooses.

`paper` takes the parameters that the paper names; most were chosen by the very score that is
reported. `validation` asks the search of each place, see `searches`: the same number of trials for
every row, with seeds of their own, and the best is run with other seeds. Brings no torch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from contrastbench.benchmarks.tables import points, staged
from contrastbench.benchmarks.tables.searches import Choice
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


def selection_rule(table: Table, found: Mapping[tuple[str, str], Choice]) -> Iterator[str]:
    """Say how the parameters of rows and columns are chosen, some of them by seeds for trials."""
    staged_search = table.is_staged
    if table.has_points:
        yield f"{points.RULE}; {table.budget.trials or points.BUDGET} candidates for each method"
        return
    if any(one.nested for one in found.values()):
        yield (
            "each outer fold of each seed has the best of its method's trials by the inner "
            "accuracy of its own training part, which has not seen what the fold is scored on"
            + f" ({staged.RULE_OF_FOLDS})"
            * staged_search
        )
    if columns := [column for (_, column), one in found.items() if one.best_of]:
        yield (
            "for each method and column the best of its trials by validation score over seeds "
            f"{trial_seeds_text(table, columns)}, which no shown number is of"
            + f" ({staged.SEARCH_RULE})"
            * staged_search
        )
    if staged_search:
        yield f"at most {table.budget.trials or staged.BUDGET} trials for each method"
    else:
        yield "the same budget for each method"


def trial_seeds_text(table: Table, columns: Iterable[str]) -> str:
    """Return the seeds of the trials of some columns; by domain, where these differ."""
    by_domain = {table.domain_of(one): table.seeds_of_trials(one) for one in columns}
    texts = {name: ", ".join(map(str, seeds)) for name, seeds in by_domain.items()}
    if len({*texts.values()}) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{seeds} ({name})" for name, seeds in texts.items())
