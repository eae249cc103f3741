"""Tables: columns, rows, and the experiment that fills each place."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from contrastbench.benchmarks.records import failures, nested
from contrastbench.benchmarks.records.experiment import ByData, Experiment
from contrastbench.benchmarks.records.moment import remembered
from contrastbench.benchmarks.records.seeds import SEEDS
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.protocol import Printed, Protocol
from contrastbench.domains.registry import declaration
from contrastbench.domains.strict_yaml import ByProgram, Strict
from contrastbench.losses.spec import LossSpec

# ends the name of a metric for which something was chosen on the test set
ON_TEST = "_best_epoch_on_test"
EVERY_TRIAL = "every trial diverged"  # why a place has no parameters, and never will
# by source: the keys beside it whose values are printed there
Marks = dict[Printed, list[str]]
Seed = Annotated[int, Field(ge=0, lt=SEEDS)]
Published = Annotated[list[float], Field(min_length=1, max_length=2)]  # [mean] or [mean, std]


class Column(Strict):
    """One dataset with its training settings; without a dataset the column is only quoted."""

    dataset: str | None = None
    domain: str | None = None  # instead of the table's
    metric: str | None = None  # instead of the table's
    recipe: dict[str, Any] = Field({})
    recipe_from: Marks = Field({})


@dataclass(frozen=True)
class Setting:
    """One trial of a row.

    Args:
        params: of its loss, or of another loss that its loss becomes.
        loss: that other loss; None: the row's own.
        recipe: values over the row's recipe.
    """

    params: dict[str, Any]
    loss: str | None = None
    recipe: dict[str, Any] = field(default_factory=dict)


class Row(Strict):
    """One method: published values, and its settings unless the row is only quoted."""

    name: str
    loss: str | None = None
    params: dict[str, Any] = Field({})
    params_by_column: dict[str, dict[str, Any]] = Field({})
    grid: dict[str, list[Any]] = Field({}, description="values to choose from, instead of params")
    grid_by_column: dict[str, dict[str, list[Any]]] = Field({})  # over grid
    settings: ByProgram[list[dict[str, Any]]] = Field(
        [], description="parameters to choose among, instead of a grid; set by a sweep file"
    )
    recipe: dict[str, Any] = Field({})  # over the column's
    params_from: Marks = Field({})
    recipe_from: Marks = Field({})
    paper: dict[str, Published] = Field({})  # by column
    printed: ByProgram[dict[str, list[str]]] = Field(
        {}, description="the published values letter by letter; set by the reader of the file"
    )
    loss_by_column: ByProgram[dict[str, str]] = Field(
        {}, description="the simpler loss that a column's trials have chosen; set by a selection"
    )
    recipe_by_column: ByProgram[dict[str, dict[str, Any]]] = Field(
        {}, description="values over the recipe that trials have chosen; set by a selection"
    )
    undecided: ByProgram[dict[str, str]] = Field(
        {}, description="why nothing is chosen in a column; set by a selection"
    )
    nested: ByProgram[dict[str, list[Setting]]] = Field(
        {}, description="trials that each fold of a column chooses among; set by a selection"
    )
    best_of: ByProgram[dict[str, int]] = Field(
        {}, description="how many settings a column's are the best of; set by a selection"
    )
    same_as: ByProgram[dict[str, str]] = Field(
        {}, description="name of the row that this one is by algebra, by column; set by `same`"
    )
    control: ByProgram[str] = Field(
        "", description="name of the control that the row is, see the module; set by a sweep file"
    )
    repeats: ByProgram[str] = Field(
        "", description="name of the row that this one repeats on further data; set by `apart`"
    )
    data: ByProgram[dict[str, str]] = Field(
        {}, description="data hash by column, of a row for further data; set by `apart`"
    )


class Tune(Strict):
    """The budget of a selection on validation data, the same for every method."""

    seeds: list[Seed] = Field(
        [1000, 1001], min_length=1, description="of trials; no shown number is of these"
    )
    trials: int | None = Field(
        None,
        ge=1,
        description="settings for each method; default: those of the smallest grid, 4 of a "
        "hypercube, 12 of a staged search",
    )
    search: Literal["hypercube", "staged"] | None = Field(
        None, description="of a sweep without a grid, see the modules of that name"
    )


class Table(Strict):
    """A published table or a sweep file."""

    name: ByProgram[str] = ""
    title: str
    source: str
    notes: str = ""
    decimals: int = Field(ge=0, le=10)
    domain: str
    metric: str | None = None  # the one that the domain calls its main one
    recipe: dict[str, Any] = Field({})
    protocol: Protocol = Protocol()
    columns: dict[str, Column] = Field(min_length=1)
    average: str | None = Field(None, description="name of a last column, the mean of all others")
    rows: list[Row] = Field(min_length=1)
    seeds: list[Seed] = Field([0, 1, 2, 3, 4])  # those of a sweep that names none
    tune: Tune | None = Tune()
    tiny: ByProgram[bool] = False  # a smoke test
    sweep: ByProgram[bool] = False  # made of losses and data, which others can join
    grid: ByProgram[dict[str, list[Any]]] = Field(
        {}, description="of a sweep, for losses that join it too"
    )
    joined: ByProgram[list[str]] = Field(
        [], description="names of rows that were asked for by `--loss`"
    )
    selection: ByProgram[str] = "paper: parameters as published"
    choices: ByProgram[list[str]] = Field([], description="what a selection has chosen; set by it")
    copies: ByProgram[list[str]] = Field(
        [], description="of sets that records are of; set by `apart`"
    )

    @property
    def quotes(self) -> bool:
        """Return whether there are published values beside ours."""
        return any(row.paper for row in self.rows)

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """Seeds that parameters are chosen with, here or in other sweeps: they are no results."""
        return tuple((self.tune or Tune()).seeds)

    def runnable(self, row: Row, column: str) -> bool:
        """Return whether the place can be run here; if not, it is quoted."""
        there = row.loss is not None and self.columns[column].dataset is not None
        if row.control and row.recipe_by_column:
            there = there and column in row.recipe_by_column
        return there and (not row.data or column in row.data)

    def domain_of(self, column: str) -> str:
        """The column's own domain, or the table's."""
        return self.columns[column].domain or self.domain

    def metric_of(self, column: str) -> str | None:
        """The metric that the column shows; None: the one that the domain calls its main one.

        Where parameters are chosen on validation data, nothing else is chosen on the test set.
        """
        metric = self.columns[column].metric or self.metric
        honest = self.selection.startswith("validation")
        return metric.replace(ON_TEST, "") if metric and honest else metric

    @property
    def selection_label(self) -> str:
        """The selection, with the columns that show the best epoch of a classifier on the test set.

        Released codes report that; it is no honest number.
        """
        metrics = {column: self.metric_of(column) or "" for column in self.columns}
        some = [column for column, metric in metrics.items() if ON_TEST in metric]
        where = "" if len(some) == len(self.columns) else f" in {', '.join(some)}"
        text = f"the classifier's epoch{where} is chosen on the test set, as the released code does"
        return f"{self.selection}; {text}" if some else self.selection

    def experiment(self, row: Row, column: str) -> Experiment:
        """Return the experiment that fills a place, for rows with a loss."""
        row = self.original(row, column)
        params = {**row.params, **row.params_by_column.get(column, {})}
        loss, recipe = row.loss_by_column.get(column), row.recipe_by_column.get(column, {})
        return self.trial(row, column, Setting(params, loss, recipe))

    def original(self, row: Row, column: str) -> Row:
        """Return the row whose cells fill a place: another one where the loss is the same."""
        if column not in row.same_as:
            return row
        return next(one for one in self.rows if one.name == row.same_as[column])

    def trial(self, row: Row, column: str, setting: Setting) -> Experiment:
        """Return the experiment that would fill a place in with this setting."""
        about, domain = self.columns[column], self.domain_of(column)
        assert row.loss is not None, "quoted rows are not run"
        assert about.dataset is not None, "quoted columns are not run"
        loss = LossSpec(setting.loss or row.loss, setting.params)
        small = {**declaration(domain).tiny, "score_at": ()} if self.tiny else {}
        recipe = {**self.recipe, **about.recipe, **row.recipe, **setting.recipe, **small}
        work = Experiment(domain, about.dataset, loss, recipe)
        return remembered(("experiment", str(work)), lambda: work)

    def experiments(self, row: Row, column: str) -> list[Experiment]:
        """Return the experiments of a place: one, or the trials that folds choose among."""
        if column not in row.nested:
            return [self.experiment(row, column)]
        return [self.trial(row, column, setting) for setting in row.nested[column]]

    def by_data(self, row: Row, column: str, results: Path) -> ByData:
        """The ok records behind a place by data and seed, those of the place's own data first.

        None while its parameters are still to be chosen.
        """
        if column in row.undecided:
            return {}
        work, of_folds = self.experiments(row, column), column in row.nested
        what = (results, of_folds, self.tuning_seeds, *((one.key, one.label) for one in work))
        found = remembered(what, partial(self.ok_by_data, work, of_folds, results))
        own = row.data.get(column)
        return {own: found[own]} if own else found

    def ok_by_data(self, work: list[Experiment], of_folds: bool, results: Path) -> ByData:
        """The ok records of an experiment, or of what folds choose among several."""
        if of_folds:
            return nested.ok_by_data(work, results, self.tuning_seeds)
        return work[0].ok_by_data(results, self.tuning_seeds)

    def records(self, row: Row, column: str, results: Path) -> dict[int, Record]:
        """The ok records behind a place by seed, all on the place's own data."""
        return next(iter(self.by_data(row, column, results).values()), {})

    def failure(self, row: Row, column: str, results: Path) -> str:
        """Say how seeds on the place's data failed, such as diverged (2 of 5), or nothing."""
        if column in row.undecided:
            return "diverged (every trial)" if row.undecided[column] == EVERY_TRIAL else ""
        work = self.experiments(row, column)
        failed = failures.failed_by_data(work, results, self.tuning_seeds)
        ok = self.by_data(row, column, results)
        own = next(iter(ok or failed), "")
        return failures.in_words(list(failed.get(own, {}).values()), len(ok.get(own, {})))
