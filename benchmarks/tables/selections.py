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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.records.experiment import ByData, Experiment, ordered_by_data
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables import hypercube, staged
from contrastbench.benchmarks.tables.controls import CONTROLS, baseline
from contrastbench.benchmarks.tables.grid import draw_settings, grid_of, grid_settings
from contrastbench.benchmarks.tables.staged import Search
from contrastbench.benchmarks.tables.table import Row, Selection, Setting, Table
from contrastbench.errors import UserError, unknown
from contrastbench.losses.reduction import simplest
from contrastbench.losses.spec import NONE, LossSpec

SELECTIONS = (Selection.PAPER.value, Selection.VALIDATION.value)
NO_SEARCH = Search([])
NO_GRID = "its parameters are the paper's choice and it declares no grid"
EVERY_TRIAL = "every trial diverged"  # why a place has no parameters, and never will


@dataclass(frozen=True)
class ChosenSettings:
    """The settings that fill a place, as far as records decide them.

    Args:
        settings: the one that is chosen, or those that each fold chooses among; the file's while
            nothing is chosen.
        tried: the trials that choose.
        folds: whether each fold chooses.
        why: the reason why nothing is chosen yet; empty: something is.
        distinct: how many different validation scores the trials have, where these choose.
    """

    settings: Sequence[Setting]
    tried: Search = NO_SEARCH
    folds: bool = False
    why: str = ""
    distinct: int = 0

    @property
    def best_of(self) -> int:
        """The number of trials that the setting is the best of; 0: it is no choice of trials."""
        return 0 if self.folds else len(self.tried.settings)

    @property
    def scores_alike(self) -> bool:
        """Return whether most trials have the score of another one: they tried next to nothing."""
        return 0 < 2 * self.distinct <= self.best_of

    @property
    def is_open(self) -> bool:
        """Return whether the place will have a result once its trials are done."""
        return self.why not in ("", EVERY_TRIAL, NO_GRID)


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
    has_grid = any(row.grid or row.grid_by_column or row.settings for row in table.rows)
    if table.budget.search != "staged" and not has_grid:
        raise UserError(
            f"{table.name} declares no grid to choose from: give its rows a grid, or --selection "
            "paper"
        )
    return Selection.VALIDATION


def choose(
    table: Table, row: Row, column: str, selection: Selection, results: Path
) -> ChosenSettings:
    """Return what fills a place.

    Raises:
        UserError: a trial's record has no validation score.
    """
    row = table.original(row, column)
    if selection != Selection.VALIDATION or (row.control and row.loss == NONE):
        return ChosenSettings([table.setting(row, column)])
    if row.beside:
        setting = setting_beside(table, row, column, results)
        if isinstance(setting, Setting):
            return ChosenSettings([setting])
        return ChosenSettings([table.setting(row, column)], why=setting)
    found = search_of(table, row, column, results)
    if is_nested(experiments(table, row, column, found.settings)):
        return ChosenSettings(found.settings, found, folds=True)
    if row.control:
        setting, distinct = setting_of_control(table, row, column, results), 0
    else:
        setting, distinct = best_setting(table, row, column, found, results)
    if isinstance(setting, Setting):
        return ChosenSettings([setting], found, distinct=distinct)
    return ChosenSettings([table.setting(row, column)], found, why=setting)


def setting_of_control(table: Table, row: Row, column: str, results: Path) -> Setting | str:
    """Return the setting that a control takes from its baseline, or why that is not known.

    A control with a loss of its own takes the recipe alone.

    Raises:
        UserError: a trial's record has no validation score.
    """
    base, setting = chosen_by_baseline(table, column, results)
    if isinstance(setting, str):
        return setting
    recipe = {**setting.recipe, **row.recipe_by_column.get(column, {})}
    if row.loss == base.loss:
        params = {**setting.params, **CONTROLS[row.control].params}
        return replace(setting, params=params, recipe=recipe)
    return Setting(row.params, recipe=recipe)


def setting_beside(table: Table, row: Row, column: str, results: Path) -> Setting | str:
    """Return a row at the temperature and learning rate that its baseline chose, or why not yet.

    Raises:
        UserError: a trial's record has no validation score.
    """
    base, setting = chosen_by_baseline(table, column, results)
    if isinstance(setting, str):
        return f"{base.name}: {setting} (bench merge --shipped adds what ships)"
    own = LossSpec(row.loss or NONE, row.params)
    loss = staged.at_temperature(own, replace(setting, loss=setting.loss or base.loss))
    return Setting(loss.params, recipe=setting.recipe)


def chosen_by_baseline(table: Table, column: str, results: Path) -> tuple[Row, Setting | str]:
    """Return the baseline with its setting, or with why that is not known yet.

    Where folds choose, the setting is the one that most of them chose.
    """
    base = baseline(table.rows)
    assert base is not None, "what is trained beside it has a baseline"
    found = choose(table, base, column, Selection.VALIDATION, results)
    if not found.folds:
        return base, found.why or found.settings[0]
    tried = experiments(table, base, column, found.settings)
    return base, most_chosen(tried, table.seeds_of_trials(column), results)


def most_chosen(trials: Sequence[Experiment], but: Sequence[int], results: Path) -> Setting | str:
    """Return the setting that most folds of all seeds chose, or why there is none yet."""
    records = next(iter(nested.ok_by_data(trials, results, but).values()), {})
    if not records:
        return f"no seed of its baseline has all {len(trials)} trials yet"
    params, _ = nested.frequencies(list(records.values()))[0]
    loss = params.get("loss", trials[0].loss.name)
    return Setting({key: value for key, value in params.items() if key != "loss"}, loss)


def is_nested(tried: Sequence[Experiment]) -> bool:
    """Return whether each fold chooses among these trials."""
    return bool(tried) and tried[0].full_recipe.nested


def best_setting(
    table: Table, row: Row, column: str, found: Search, results: Path
) -> tuple[Setting | str, int]:
    """Return the best setting of a search, or why that is not known, and how many scores differ.

    Raises:
        UserError: a trial's record has no validation score.
    """
    if not found.settings:
        return (NO_GRID if row.params_by_column.get(column) else Setting(row.params)), 0
    tried = experiments(table, row, column, found.settings)
    scores = scores_of(tried, table.seeds_of_trials(column), results)
    done = [one for one in scores if one is not None]
    if len(done) < len(tried):
        return f"{len(done)} of {len(tried) + found.more} trials are done", 0
    best = max(done)
    chosen = EVERY_TRIAL if best == -inf else found.settings[done.index(best)]
    return chosen, len({*done})


def scores_of(
    tried: Sequence[Experiment], seeds: Sequence[int], results: Path
) -> list[float | None]:
    """The trials' scores on the first data that have most of them: data are never mixed."""
    finished = nested.finished_of(tried, results)
    data: ByData = {}
    for record in finished:
        if record["seed"] in seeds:
            data.setdefault(record["data_hash"], {})[record["seed"]] = record
    runs = [(trial, [one for one in finished if trial.matches(one)]) for trial in tried]
    found = [
        [tuning_score(trial, records, seeds, data_hash) for trial, records in runs]
        for data_hash in ordered_by_data(data)
    ]
    return min(found, key=lambda scores: scores.count(None), default=[None] * len(tried))


def tuning_score(
    trial: Experiment, records: Sequence[Record], seeds: Sequence[int], data_hash: str
) -> float | None:
    """Mean validation score over the seeds on those data.

    None while one is missing, -inf if one diverged.
    """
    by_seed = {
        record["seed"]: record
        for record in records
        if record["data_hash"] == data_hash and record["seed"] in seeds
    }
    if set(by_seed) != set(seeds):
        return None
    return fmean(validation_score(trial, record) for record in by_seed.values())


def validation_score(trial: Experiment, record: Record) -> float:
    """A record's validation score: percent, larger is better."""
    if record["status"] != "ok":
        return -inf
    validation = scored_parts(record).validation
    if validation is None:
        raise UserError(
            f"{trial.label}, seed {record['seed']}: the record has no details.validation to "
            "choose by: domain "
            f"{trial.domain} does not give one, or the record is older than that and has to be "
            "deleted"
        )
    return validation


def experiments(
    table: Table, row: Row, column: str, settings: Sequence[Setting]
) -> list[Experiment]:
    """Return the experiments that would fill a place with these settings."""
    row = table.original(row, column)
    return [table.trial(row, column, setting) for setting in settings]


def search_of(table: Table, row: Row, column: str, results: Path) -> Search:
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
    if drawn or table.budget.search != "staged":
        return Search([Setting({**row.params, **setting}) for setting in drawn])
    space = space_of(table, row, column)
    if not hypercube.searched_ranges(space.loss):
        return Search([])
    if table.experiment(row, column).full_recipe.nested:
        return Search(staged.of_folds(space))

    def scores(settings: Sequence[Setting]) -> list[float | None]:
        tried = experiments(table, row, column, settings)
        return scores_of(tried, table.seeds_of_trials(column), results)

    return staged.search(space, scores)


def space_of(table: Table, row: Row, column: str) -> staged.Space:
    """Return the space that a place's trials are searched in."""
    loss = LossSpec(row.loss or NONE, row.params)
    recipe = table.trial(row, column, Setting(row.params)).full_recipe
    limit = simplest(loss, recipe.pairing_facts)
    return staged.Space(loss, limit, recipe.lr, table.budget.trials or staged.BUDGET)


def drawn_settings(table: Table, row: Row, column: str) -> list[dict[str, Any]]:
    """Return a row's settings from its grid, as many as every row of the column gets."""
    size = len(grid_settings(row, column))
    if not size:
        return []
    sizes = [len(grid_settings(other, column)) for other in table.rows]
    count = table.budget.trials or min(filter(None, sizes))
    if size < count:
        raise UserError(
            f"{table.name}: the grid of {row.name} has {size} settings for {count} trials: "
            "extend it"
        )
    return draw_settings(grid_of(row, column), count)


def selection_rule(table: Table, found: Mapping[tuple[str, str], ChosenSettings]) -> Iterator[str]:
    """Say how the parameters of rows and columns are chosen, some of them by seeds for trials."""
    staged_search = table.budget.search == "staged"
    if any(one.folds for one in found.values()):
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
