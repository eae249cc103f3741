"""Tables: columns, rows, and the experiment that fills each place."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.moment import remembered
from contrastbench.benchmarks.records.seeds import SEEDS
from contrastbench.benchmarks.tables.protocol import Printed, Protocol
from contrastbench.domains.registry import declaration
from contrastbench.domains.strict_yaml import ByProgram, Strict
from contrastbench.losses.spec import LossSpec

# ends the name of a metric for which something was chosen on the test set
ON_TEST = "_best_epoch_on_test"
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


class Selection(StrEnum):
    """The way in which a table's parameters are chosen."""

    PAPER = "paper"
    VALIDATION = "validation"
    NONE = "none"  # a file gives them, and no paper does


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
    recipe_by_column: ByProgram[dict[str, dict[str, Any]]] = Field(
        {}, description="a control's values over the recipe, by column; set by a sweep file"
    )
    same_as: ByProgram[dict[str, str]] = Field(
        {}, description="name of the row that this one is by algebra, by column; set by `same`"
    )
    control: ByProgram[str] = Field(
        "", description="name of the control that the row is, see the module; set by a sweep file"
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

    @property
    def quotes(self) -> bool:
        """Return whether there are published values beside ours."""
        return any(row.paper for row in self.rows)

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """Seeds that parameters are chosen with, here or in other sweeps: they are no results."""
        return tuple((self.tune or Tune()).seeds)

    @property
    def is_staged(self) -> bool:
        """Return whether parameters are searched in stages."""
        return bool(self.tune and self.tune.search == "staged")

    def runnable(self, row: Row, column: str) -> bool:
        """Return whether the place can be run here; if not, it is quoted."""
        there = row.loss is not None and self.columns[column].dataset is not None
        return there and (not row.recipe_by_column or column in row.recipe_by_column)

    def domain_of(self, column: str) -> str:
        """The column's own domain, or the table's."""
        return self.columns[column].domain or self.domain

    def metric_of(self, column: str) -> str | None:
        """The metric that the file gives a column; None: the domain's main one."""
        return self.columns[column].metric or self.metric

    @property
    def selection(self) -> Selection:
        """The selection that the table has if none is asked for."""
        if self.sweep and self.tune:
            return Selection.VALIDATION
        return Selection.NONE if self.sweep or not self.quotes else Selection.PAPER

    def experiment(self, row: Row, column: str) -> Experiment:
        """Return the experiment of a place with the parameters of the file."""
        row = self.original(row, column)
        return self.trial(row, column, self.setting(row, column))

    def setting(self, row: Row, column: str) -> Setting:
        """Return the setting of a place as the file gives it."""
        params = {**row.params, **row.params_by_column.get(column, {})}
        return Setting(params, recipe=row.recipe_by_column.get(column, {}))

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
