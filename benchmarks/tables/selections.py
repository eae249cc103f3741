"""Choose the parameters of a table's numbers.

The published ones, or those that validation data choose.

`paper` takes the parameters that the paper names; most were chosen by the very score that is
reported. `validation` tries settings of each row's grid, the same number for every row, with seeds
of their own; the best mean validation score wins and is run with other seeds. Settings are those of
a grid, of a hypercube, or of a search in stages, which asks the scores so far for the next stage.
Where folds turn, as on graphs, that choice has seen every sample: there each fold of each seed
chooses by its own training part, see `records.nested`, and all trials are run with the seeds that
are shown. Choices are worked out from records whenever they are needed. Brings no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.records.experiment import ByData, Experiment, in_order
from contrastbench.benchmarks.records.scored import scored
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables import hypercube, staged
from contrastbench.benchmarks.tables.apart import apart
from contrastbench.benchmarks.tables.controls import baseline
from contrastbench.benchmarks.tables.grid import draw, grid_of, settings
from contrastbench.benchmarks.tables.staged import Search
from contrastbench.benchmarks.tables.table import EVERY_TRIAL, Row, Setting, Table, Tune
from contrastbench.losses.errors import UserError, unknown
from contrastbench.losses.reduction import simplest
from contrastbench.losses.spec import NONE, LossSpec

SELECTIONS = ("paper", "validation")
NOTHING_TO_CHOOSE = "as it is given: it declares no ranges to choose from"
Work = list[tuple[Experiment, Sequence[int]]]


def check(table: Table, selection: str, seeds: Sequence[int] = ()) -> None:
    """Raise unless that selection can be made, with seeds that it does not use.

    Raises:
        UserError: it cannot.
    """
    if selection not in SELECTIONS:
        raise unknown("selection", selection, SELECTIONS)
    shared = sorted(set(seeds) & set(tune(table).seeds))
    if shared:
        raise UserError(
            f"seeds {shared} choose the parameters, so they cannot confirm them: give others "
            "with --seeds"
        )
    if selection == "paper":
        if default(table) != "paper":
            raise UserError(
                f"{table.name} has no published parameters: it chooses them on validation data"
            )
        return
    if tune(table).search == "staged":
        return
    if not any(row.grid or row.grid_by_column or row.settings for row in table.rows):
        raise UserError(
            f"{table.name} declares no grid to choose from: give its rows a grid, or --selection "
            "paper"
        )


def default(table: Table) -> str:
    """The selection that a table has if none is asked for."""
    name = table.selection.partition(":")[0]
    return name if name in SELECTIONS else "paper"


def tune(table: Table) -> Tune:
    """Return the budget of the table's selection."""
    return table.tune or Tune()


def resolve(table: Table, selection: str | None, results: Path) -> Table:
    """The table as records make it.

    It has the parameters that the selection chooses in place of the published ones, and further
    rows for records of other data.
    """
    selection = selection or default(table)
    check(table, selection)
    if selection == "validation":
        rows = [resolve_row(table, row, results) for row in table.rows]
        how = "; ".join(rules(rows, tune(table)))
        label = f"validation: {how}; as many trials for each method"
        chosen = table.model_copy(update={"rows": rows, "selection": label})
        table = chosen.model_copy(update={"choices": list(choices(chosen, results))})
    return apart(table, results)


def resolve_row(table: Table, row: Row, results: Path) -> Row:
    """The row with what was chosen for each column, or why there is nothing yet."""
    if row.control:
        return resolve_control(table, row, results)
    chosen: dict[str, Setting] = {}
    undecided: dict[str, str] = {}
    among: dict[str, list[Setting]] = {}
    best_of: dict[str, int] = {}
    for column in (name for name in table.columns if table.runnable(row, name)):
        found = search(table, row, column, results)
        if is_nested(experiments(table, row, column, found)):
            among[column] = found.settings
            continue
        if found.settings:
            best_of[column] = len(found.settings)
        choice = best_setting(table, row, column, results)
        if isinstance(choice, Setting):
            chosen[column] = choice
        else:
            undecided[column] = choice
    told = {"undecided": undecided, "nested": among, "best_of": best_of}
    return row.model_copy(update={"params": {}, **by_column(row, chosen), **told})


def resolve_control(table: Table, row: Row, results: Path) -> Row:
    """Return a control with its baseline's setting in each column, or why there is none yet."""
    if row.loss == NONE:
        return row
    columns = row.recipe_by_column
    found = {column: setting_of_control(table, row, column, results) for column in columns}
    chosen = {column: one for column, one in found.items() if isinstance(one, Setting)}
    undecided = {column: one for column, one in found.items() if isinstance(one, str)}
    recipes = {**columns, **{column: one.recipe for column, one in chosen.items()}}
    told = {"params": {}, "undecided": undecided, "recipe_by_column": recipes}
    return row.model_copy(update={**by_column(row, chosen), **told})


def setting_of_control(table: Table, row: Row, column: str, results: Path) -> Setting | str:
    """Return the setting that a control takes from its baseline, or why that is not known.

    A control with a loss of its own takes the recipe alone.

    Raises:
        UserError: a trial's record has no validation score.
    """
    own = row.recipe_by_column.get(column, {})
    if row.loss == NONE:
        return Setting(row.params, recipe=own)
    base = baseline(table.rows)
    assert base is not None, "a control that is trained has a baseline"
    setting = usual_setting(table, base, column, results)
    if isinstance(setting, str):
        return setting
    recipe = {**setting.recipe, **own}
    if row.loss == base.loss:
        return replace(setting, recipe=recipe)
    return Setting(row.params, recipe=recipe)


def usual_setting(table: Table, row: Row, column: str, results: Path) -> Setting | str:
    """Return the setting of a place; where folds choose, the one that most of them chose."""
    tried = trials(table, row, column, results)
    if is_nested(tried):
        return most_chosen(tried, tune(table), results)
    return best_setting(table, row, column, results)


def most_chosen(trials: Sequence[Experiment], tune: Tune, results: Path) -> Setting | str:
    """Return the setting that most folds of all seeds chose, or why there is none yet."""
    records = next(iter(nested.ok_by_data(trials, results, tune.seeds).values()), {})
    if not records:
        return f"no seed of its baseline has all {len(trials)} trials yet"
    params, _ = nested.frequencies(list(records.values()))[0]
    loss = params.get("loss", trials[0].loss.name)
    return Setting({key: value for key, value in params.items() if key != "loss"}, loss)


def by_column(row: Row, chosen: dict[str, Setting]) -> dict[str, Any]:
    """Return the fields of a row that hold what was chosen for each column."""
    return {
        "params_by_column": {column: one.params for column, one in chosen.items()},
        "loss_by_column": {
            column: one.loss for column, one in chosen.items() if one.loss not in (None, row.loss)
        },
        "recipe_by_column": {column: one.recipe for column, one in chosen.items() if one.recipe},
    }


def is_nested(tried: Sequence[Experiment]) -> bool:
    """Return whether each fold chooses among these trials."""
    return bool(tried) and tried[0].full_recipe.nested


def choose(table: Table, row: Row, column: str, results: Path) -> Experiment | str:
    """Return the experiment that fills the place, or why that is not known.

    Raises:
        UserError: a trial's record has no validation score.
    """
    row = table.original(row, column)
    setting = (setting_of_control if row.control else best_setting)(table, row, column, results)
    return table.trial(row, column, setting) if isinstance(setting, Setting) else setting


def best_setting(table: Table, row: Row, column: str, results: Path) -> Setting | str:
    """Return the setting that fills the place, or why that is not known.

    Raises:
        UserError: a trial's record has no validation score.
    """
    row = table.original(row, column)
    found = search(table, row, column, results)
    tried = experiments(table, row, column, found)
    if not tried:
        published = row.params_by_column.get(column)
        return (
            "its parameters are the paper's choice and it declares no grid"
            if published
            else Setting(row.params)
        )
    scores = scores_of(tried, tune(table), results)
    done = [value for value in scores if value is not None]
    if len(done) < len(tried):
        return f"{len(done)} of {len(tried) + found.more} trials are done"
    best = max(done)
    return EVERY_TRIAL if best == -inf else found.settings[done.index(best)]


def scores_of(tried: Sequence[Experiment], tune: Tune, results: Path) -> list[float | None]:
    """The trials' scores on the first data that have most of them: data are never mixed."""
    finished = nested.finished_of(tried, results)
    data: ByData = {}
    for record in finished:
        if record["seed"] in tune.seeds:
            data.setdefault(record["data_hash"], {})[record["seed"]] = record
    runs = [(trial, [one for one in finished if trial.matches(one)]) for trial in tried]
    found = [
        [score(trial, records, tune, data_hash) for trial, records in runs]
        for data_hash in in_order(data)
    ]
    return min(found, key=lambda scores: scores.count(None), default=[None] * len(tried))


def score(trial: Experiment, records: Sequence[Record], tune: Tune, data_hash: str) -> float | None:
    """Mean validation score over the tuning seeds on those data.

    None while one is missing, -inf if one diverged.
    """
    by_seed = {
        record["seed"]: record
        for record in records
        if record["data_hash"] == data_hash and record["seed"] in tune.seeds
    }
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


def trials(table: Table, row: Row, column: str, results: Path | None = None) -> list[Experiment]:
    """Return the trials of a place that are known by the records; None: before any record."""
    return experiments(table, row, column, search(table, row, column, results))


def experiments(table: Table, row: Row, column: str, found: Search) -> list[Experiment]:
    """Return the experiments of a search's settings."""
    return [table.trial(row, column, setting) for setting in found.settings]


def search(table: Table, row: Row, column: str, results: Path | None) -> Search:
    """Return the settings that are tried.

    Those of the row, or so many of its grid as every row of the column gets, drawn at random; or
    those of the stages that are known.

    Raises:
        UserError: the grid has fewer.
    """
    if row.control:
        return Search([])
    row = table.original(row, column)
    drawn = row.settings or drawn_settings(table, row, column)
    if drawn or tune(table).search != "staged":
        return Search([Setting({**row.params, **setting}) for setting in drawn])
    space = space_of(table, row, column)
    if not hypercube.searched(space.loss):
        return Search([])
    if table.experiment(row, column).full_recipe.nested:
        return Search(staged.of_folds(space))

    def scores(settings: Sequence[Setting]) -> list[float | None]:
        tried = experiments(table, row, column, Search([*settings]))
        return scores_of(tried, tune(table), results) if results else [None] * len(tried)

    return staged.search(space, scores)


def space_of(table: Table, row: Row, column: str) -> staged.Space:
    """Return the space that a place's trials are searched in."""
    loss = LossSpec(row.loss or NONE, row.params)
    recipe = table.trial(row, column, Setting(row.params)).full_recipe
    limit = simplest(loss, recipe.pairing_facts)
    return staged.Space(loss, limit, recipe.lr, tune(table).trials or staged.BUDGET)


def to_come(table: Table, row: Row, column: str, results: Path) -> int:
    """Return how many trials of a place will follow from its records, at most."""
    return search(table, row, column, results).more


def drawn_settings(table: Table, row: Row, column: str) -> list[dict[str, Any]]:
    """Return a row's settings from its grid, as many as every row of the column gets."""
    size = len(settings(row, column))
    if not size:
        return []
    sizes = [len(settings(other, column)) for other in table.rows]
    count = tune(table).trials or min(filter(None, sizes))
    if size < count:
        raise UserError(
            f"{table.name}: the grid of {row.name} has {size} settings for {count} trials: "
            "extend it"
        )
    return draw(grid_of(row, column), count)


def work(table: Table, row: Row, column: str, seeds: Sequence[int], results: Path) -> Work:
    """Trials with the tuning seeds, and what they have chosen with the others.

    Trials with the shown seeds alone where each fold chooses.
    """
    tried = trials(table, row, column, results)
    if is_nested(tried):
        return [(trial, seeds) for trial in tried]
    planned: Work = [(trial, tune(table).seeds) for trial in tried]
    chosen = choose(table, row, column, results)
    return [*planned, (chosen, seeds)] if isinstance(chosen, Experiment) else planned


def is_open(table: Table, row: Row, column: str, results: Path) -> bool:
    """Return whether the place will have a result once its trials are done."""
    tried = trials(table, row, column, results)
    if is_nested(tried) or not (tried or row.control):
        return False
    chosen = choose(table, row, column, results)
    return isinstance(chosen, str) and chosen != EVERY_TRIAL


def rules(rows: Sequence[Row], tune: Tune) -> Iterator[str]:
    """Say how the parameters of resolved rows are chosen, some of them by seeds for trials."""
    if any(row.nested for row in rows):
        yield (
            "each outer fold of each seed has the best of its method's trials by the inner "
            "accuracy of its own training part, which has not seen what the fold is scored on"
            + f" ({staged.RULE_OF_FOLDS})"
            * (tune.search == "staged")
        )
    if any(row.best_of for row in rows):
        yield (
            "for each method and column the best of its trials by validation score over seeds "
            f"{', '.join(map(str, tune.seeds))}, which no shown number is of"
            + f" ({staged.RULE})"
            * (tune.search == "staged")
        )


def choices(table: Table, results: Path) -> Iterator[str]:
    """Yield the chosen parameters of each method; equal ones are put together.

    Frequencies where folds choose.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        for text, columns in choices_of(table, row, results).items():
            alike.setdefault((", ".join(columns), text), []).append(row.name)
    for (where, text), rows in alike.items():
        yield f"{', '.join(rows)} on {where}: {text}"


def choices_of(table: Table, row: Row, results: Path) -> dict[str, list[str]]:
    """Return the chosen parameters of a method, with the columns they were chosen for."""
    columns: dict[str, list[str]] = {}
    for column, name in row.same_as.items():
        columns.setdefault(f"the same as {name} here, by algebra", []).append(column)
    if row.same_as:
        row = elsewhere(row)
    for column in row.nested:
        columns.setdefault(by_fold(table, row, column, results), []).append(column)
    for column, why in row.undecided.items():
        columns.setdefault(why, []).append(column)
    for column, count in row.best_of.items():
        if column not in row.undecided:
            text = f"{chosen_text(row, column)}, the best of {count}"
            columns.setdefault(text, []).append(column)
    if as_given(table, row) and not row.same_as:
        columns[NOTHING_TO_CHOOSE] = [name for name in table.columns if table.runnable(row, name)]
    return columns


def elsewhere(row: Row) -> Row:
    """Return the row without what was chosen where it is the same as another one."""
    told = {name: getattr(row, name) for name in ("nested", "undecided", "best_of")}
    return row.model_copy(
        update={
            name: {column: value for column, value in values.items() if column not in row.same_as}
            for name, values in told.items()
        }
    )


def chosen_text(row: Row, column: str) -> str:
    """Return what was chosen for a column, for people."""
    params, recipe = row.params_by_column[column], row.recipe_by_column.get(column, {})
    if column not in row.loss_by_column:
        return pairs({**params, **recipe})
    limit = LossSpec(row.loss_by_column[column], params).complete
    return ", ".join([f"chose its limit: {limit.label}", *([pairs(recipe)] if recipe else [])])


def as_given(table: Table, row: Row) -> bool:
    """Return whether a method of a resolved sweep has nothing to choose, unlike others."""
    chosen = row.nested or row.undecided or row.best_of
    searched = row.loss != NONE and not row.control
    return bool(table.sweep and table.tune and searched and not chosen)


def by_fold(table: Table, row: Row, column: str, results: Path) -> str:
    """Return how many folds chose which parameters."""
    records = list(table.records(row, column, results).values())
    if not records:
        return f"no seed has all {len(row.nested[column])} trials yet"
    counted = nested.frequencies(records)
    parts = [f"{count} chose {fold_text(params)}" for params, count in counted]
    return f"of {sum(count for _, count in counted)} folds {', '.join(parts)}"


def fold_text(chosen: dict[str, Any]) -> str:
    """Return what a fold chose, which may name its loss.

    >>> fold_text({"loss": "infonce", "temperature": 0.2}), fold_text({"temperature": 0.2})
    ('infonce(temperature=0.2)', 'temperature=0.2')
    """
    if "loss" not in chosen:
        return pairs(chosen)
    return LossSpec(chosen["loss"], {k: v for k, v in chosen.items() if k != "loss"}).label


def pairs(params: dict[str, Any]) -> str:
    """Format parameters for people.

    >>> pairs({"mu": 0.7, "sigma": 1.0})
    'mu=0.7, sigma=1.0'
    >>> pairs({})
    'the defaults'
    """
    return ", ".join(f"{key}={value}" for key, value in params.items()) or "the defaults"
