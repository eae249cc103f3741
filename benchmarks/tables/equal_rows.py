"""Rows of a sweep that are one loss by algebra: they share their cells and are counted once.

`decoupled` is `infonce` where the positive is not in the denominator, for example. A row that is
the same as another one in a column says so there, and has the other row's experiment. Sweeps with a
grid or a hypercube keep their rows apart, as when they were released. Brings no torch.
"""

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.tables import hypercube
from contrastbench.benchmarks.tables.selections import space_of
from contrastbench.benchmarks.tables.staged import has_own
from contrastbench.benchmarks.tables.table import Row, Setting, Table
from contrastbench.losses.reduction import reduced
from contrastbench.losses.spec import NONE, LossSpec


def recognised(table: Table) -> Table:
    """Return the sweep with each row that is the same as another one marked."""
    if not table.sweep or (table.tune and table.tune.search != "staged"):
        return table
    same: dict[str, dict[str, str]] = {}
    for column in table.columns:
        for name, original in same_in(table, column).items():
            same.setdefault(name, {})[column] = original
    return table.but(same=same)


def same_in(table: Table, column: str) -> dict[str, str]:
    """Return the rows that are the same as another one in a column, with that row's name.

    That is the row of the simplest loss, or else the first of them.
    """
    alike: dict[str, list[tuple[bool, str]]] = {}
    for row in table.rows:
        if row.loss != NONE and not row.control and table.runnable(row, column):
            loss, searched = algebra(table, row, column)
            recipe = table.trial(row, column, Setting(row.params)).full_recipe
            values = [loss.name, loss.code, loss.params, searched, recipe.model_dump(mode="json")]
            is_other = loss.name != row.loss
            alike.setdefault(store.canonical(values), []).append((is_other, row.name))
    found: dict[str, str] = {}
    for names in alike.values():
        _, original = min(names, key=lambda one: one[0])
        found |= {name: original for _, name in names if name != original}
    return found


def algebra(table: Table, row: Row, column: str) -> tuple[LossSpec, bool]:
    """Return the loss that a row is by algebra, and whether its parameters are searched.

    A search whose every trial is of a simpler loss is the search of that loss.
    """
    space = space_of(table, row, column)
    if table.tune and hypercube.searched_ranges(space.loss):
        return (space.loss if has_own(space.loss) else space.base), True
    facts = table.trial(row, column, Setting(row.params)).full_recipe.pairing_facts
    return reduced(space.loss, facts), False
