"""Which parameters a table's numbers come from.

The published ones, or those that validation data choose.

`paper` takes the parameters that the paper names; most were chosen by the very score that is
reported. `validation` tries settings of each row's grid, the same number for every row, with seeds
of their own; the best mean validation score wins and is run with other seeds. The choice is worked
out from records whenever it is needed. Brings no torch.
"""

from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.scored import scored
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.grid import draw, grid_of, settings
from contrastbench.benchmarks.tables.table import Row, Table, Tune
from contrastbench.losses.errors import UserError, unknown

SELECTIONS = ("paper", "validation")
Work = list[tuple[Experiment, Sequence[int]]]


def check(table: Table, selection: str, seeds: Sequence[int] = ()) -> None:
    """Raise unless that selection can be made, with seeds that it does not use.

    Raises:
        UserError: it cannot.
    """
    if selection not in SELECTIONS:
        raise unknown("selection", selection, SELECTIONS)
    if selection == "paper":
        if default(table) != "paper":
            raise UserError(
                f"{table.name} has no published parameters: it chooses them on validation data"
            )
        return
    if not any(row.grid or row.grid_by_column for row in table.rows):
        raise UserError(
            f"{table.name} declares no grid to choose from: give its rows a grid, or --selection "
            "paper"
        )
    shared = sorted(set(seeds) & set(tune(table).seeds))
    if shared:
        raise UserError(
            f"seeds {shared} choose the parameters, so they cannot confirm them: give others "
            "with --seeds"
        )


def default(table: Table) -> str:
    """The selection that a table has if none is asked for."""
    name = table.selection.partition(":")[0]
    return name if name in SELECTIONS else "paper"


def tune(table: Table) -> Tune:
    """What the table's selection may cost."""
    return table.tune or Tune()


def resolve(table: Table, selection: str | None, results: Path) -> Table:
    """The table with the parameters that the selection chooses in place of the published ones."""
    selection = selection or default(table)
    check(table, selection)
    if selection == "paper":
        return table
    rows = [resolve_row(table, row, results) for row in table.rows]
    return table.model_copy(update={"rows": rows, "selection": budget(table, rows)})


def resolve_row(table: Table, row: Row, results: Path) -> Row:
    """The row with what was chosen for each column, or why there is nothing yet."""
    chosen: dict[str, dict[str, Any]] = {}
    undecided: dict[str, str] = {}
    for column in table.columns:
        choice = choose(table, row, column, results) if table.runnable(row, column) else None
        if isinstance(choice, Experiment):
            chosen[column] = choice.loss.params
        elif choice is not None:
            undecided[column] = choice
    return row.model_copy(update={"params": {}, "params_by_column": chosen, "undecided": undecided})


def choose(table: Table, row: Row, column: str, results: Path) -> Experiment | str:
    """What fills the place, or why that is not known.

    Raises:
        UserError: a trial's record has no validation score.
    """
    tried = trials(table, row, column)
    if not tried:
        published = row.params_by_column.get(column)
        return (
            "its parameters are the paper's choice and it declares no grid"
            if published
            else fixed(table, row, column)
        )
    tuning = [record for record in read(tried, results) if record["seed"] in tune(table).seeds]
    scores = [
        score(trial, [record for record in tuning if trial.matches(record)], tune(table))
        for trial in tried
    ]
    done = [value for value in scores if value is not None]
    if len(done) < len(tried):
        return f"{len(done)} of {len(tried)} trials are done"
    best = max(done)
    return "every trial diverged" if best == -inf else tried[done.index(best)]


def fixed(table: Table, row: Row, column: str) -> Experiment:
    """A row without anything to choose."""
    return table.experiment(row, column)


def read(tried: Sequence[Experiment], results: Path) -> list[Record]:
    """The finished records among which those of the trials are: they share a folder."""
    work = tried[0]
    return list(store.read_all(results, work.domain, work.dataset, work.loss.complete.name))


def score(trial: Experiment, records: Sequence[Record], tune: Tune) -> float | None:
    """Mean validation score over the tuning seeds.

    None while one is missing, -inf if one diverged.
    """
    by_seed = {record["seed"]: record for record in records}
    if set(by_seed) != set(tune.seeds):
        return None
    return fmean(validation(trial, record) for record in by_seed.values())


def validation(trial: Experiment, record: Record) -> float:
    """A record's validation score: percent, larger is better."""
    if record["status"] != "ok":
        return -inf
    validation = scored(record).validation
    if validation is None:
        raise UserError(
            f"{trial.label}, seed {record['seed']}: the record has no details.validation to "
            "choose by: domain "
            f"{trial.domain} does not give one, or the record is older than that and has to be "
            "deleted"
        )
    return validation


def trials(table: Table, row: Row, column: str) -> list[Experiment]:
    """The settings that are tried.

    So many of the row's grid as every row of the column gets, drawn at random.

    Raises:
        UserError: the grid has fewer.
    """
    sizes = [len(settings(other, column)) for other in table.rows]
    size = len(settings(row, column))
    if not size:
        return []
    count = tune(table).trials or min(filter(None, sizes))
    if size < count:
        raise UserError(
            f"{table.name}: the grid of {row.name} has {size} settings for {count} trials: "
            "extend it"
        )
    drawn = draw(grid_of(row, column), count)
    base = row.model_copy(update={"params_by_column": {}, "undecided": {}})
    return [
        table.experiment(base.model_copy(update={"params": {**row.params, **setting}}), column)
        for setting in drawn
    ]


def work(table: Table, row: Row, column: str, seeds: Sequence[int], results: Path) -> Work:
    """Trials with the tuning seeds, and what they have chosen with the others."""
    planned: Work = [(trial, tune(table).seeds) for trial in trials(table, row, column)]
    chosen = choose(table, row, column, results)
    return [*planned, (chosen, seeds)] if isinstance(chosen, Experiment) else planned


def is_open(table: Table, row: Row, column: str, results: Path) -> bool:
    """Whether the place will have a result once its trials are done."""
    return bool(trials(table, row, column)) and not isinstance(
        choose(table, row, column, results), Experiment
    )


def budget(table: Table, rows: Iterable[Row]) -> str:
    """The label of a resolved table: what choosing cost, and what came of it."""
    seeds = ", ".join(map(str, tune(table).seeds))
    parts = [
        "validation: for each method and column the best of its trials by validation score over "
        f"seeds {seeds}, which "
        "no shown number is of; as many trials for each method"
    ]
    for before, row in zip(table.rows, rows, strict=True):
        columns: dict[str, list[str]] = {}
        for column in table.columns:
            tried = len(trials(table, before, column)) if table.runnable(before, column) else 0
            if column in row.undecided:
                columns.setdefault(row.undecided[column], []).append(column)
            elif tried:
                values = ", ".join(
                    f"{key}={value}" for key, value in row.params_by_column[column].items()
                )
                columns.setdefault(f"{values}, the best of {tried}", []).append(column)
        parts += [f"{row.name} on {', '.join(some)}: {text}" for text, some in columns.items()]
    return "; ".join(parts)
