"""Say in words what a selection on validation data has chosen."""

from collections.abc import Iterator
from typing import Any

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.table import Selection
from contrastbench.losses.spec import NONE, LossSpec

NOTHING_TO_CHOOSE = "as it is given: it declares no ranges to choose from"


def choice_lines(resolved: Resolved) -> Iterator[str]:
    """Yield the chosen parameters of each method; equal ones are put together.

    Frequencies where folds choose.
    """
    if resolved.selection != Selection.VALIDATION:
        return
    alike: dict[tuple[str, str], list[str]] = {}
    for line in (line for line in resolved.lines if not line.repeats):
        for text, columns in of_line(resolved, line).items():
            alike.setdefault((", ".join(columns), text), []).append(line.name)
    for (where, text), rows in alike.items():
        yield f"{', '.join(rows)} on {where}: {text}"


def of_line(resolved: Resolved, line: Line) -> dict[str, list[str]]:
    """Return the chosen parameters of a method, with the columns they were chosen for."""
    columns: dict[str, list[str]] = {}
    for column, cell in sorted(line.cells.items(), key=lambda item: kind_of(item[1])):
        if text := of_cell(line, cell):
            columns.setdefault(text, []).append(column)
    if has_no_choice(resolved, line) and not any(cell.same_as for cell in line.cells.values()):
        columns[NOTHING_TO_CHOOSE] = list(line.cells)
    return columns


def kind_of(cell: ResolvedCell) -> int:
    """Return the sort key of a cell: equal rows, folds, open places and choices, in this order."""
    if cell.same_as:
        return 0
    return 1 if cell.choice.nested else 2 if cell.choice.why else 3


def of_cell(line: Line, cell: ResolvedCell) -> str:
    """Return the choice of one place, or nothing."""
    choice = cell.choice
    if cell.same_as:
        return f"the same as {cell.same_as} here, by algebra"
    if choice.nested:
        return by_fold(cell)
    if choice.why or not choice.best_of:
        return choice.why
    chosen = setting_text(line.row.loss, choice.settings[0])
    scores = f"have {choice.distinct} different scores" if choice.distinct > 1 else "score alike"
    return f"{chosen}, the best of {choice.best_of}" + f", which {scores}" * choice.scores_alike


def setting_text(loss: str | None, chosen: Setting) -> str:
    """Return a chosen setting of a row with that loss."""
    if chosen.loss in (None, loss):
        return params_text({**chosen.params, **chosen.recipe})
    limit = LossSpec(chosen.loss or "", chosen.params).complete
    return ", ".join(
        [
            f"chose its limit: {limit.label}",
            *([params_text(chosen.recipe)] if chosen.recipe else []),
        ]
    )


def chosen_losses(cell: ResolvedCell) -> set[str]:
    """Return the losses that a place has chosen: its row's own, or one that this is at a limit."""
    chosen = (
        [params.get("loss") for params, _ in nested.frequencies(list(cell.records.values()))]
        if cell.choice.nested
        else [one.loss for one in cell.choice.settings]
    )
    return {str(one or cell.row.loss) for one in chosen}


def is_hardly_tuned(line: Line) -> bool:
    """Return whether on most sets most trials score alike, so that a search had nothing to find."""
    searched = [cell.choice for cell in line.cells.values() if cell.choice.distinct]
    return 2 * sum(one.scores_alike for one in searched) > len(searched)


def has_no_choice(resolved: Resolved, line: Line) -> bool:
    """Return whether a method of a sweep has nothing to choose, unlike others."""
    table, row = resolved.table, line.row
    choices = [cell.choice for cell in line.cells.values()]
    chosen = any(one.nested or one.why or one.best_of for one in choices)
    searched = row.loss != NONE and not row.control and not row.beside
    return bool(table.sweep and table.tune and searched and not chosen)


def by_fold(cell: ResolvedCell) -> str:
    """Return how many folds chose which parameters."""
    records = list(cell.records.values())
    if not records:
        return f"no seed has all {len(cell.experiments)} trials yet"
    counted = nested.frequencies(records)
    parts = [f"{count} chose {fold_text(params)}" for params, count in counted]
    who = "folds" if cell.choice.nested == 1 else "choices"
    return f"of {sum(count for _, count in counted)} {who} {', '.join(parts)}"


def fold_text(chosen: dict[str, Any]) -> str:
    """Return what a fold or a seed chose, which may name its loss.

    >>> fold_text({"loss": "infonce", "temperature": 0.2}), fold_text({"temperature": 0.2})
    ('infonce(temperature=0.2)', 'temperature=0.2')
    """
    if "loss" not in chosen:
        return params_text(chosen)
    return LossSpec(chosen["loss"], {k: v for k, v in chosen.items() if k != "loss"}).label


def params_text(params: dict[str, Any]) -> str:
    """Format parameters for people.

    >>> params_text({"mu": 0.7, "sigma": 1.0})
    'mu=0.7, sigma=1.0'
    >>> params_text({})
    'the defaults'
    """
    return ", ".join(f"{key}={value}" for key, value in params.items()) or "the defaults"
