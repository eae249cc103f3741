"""Tables: columns, rows, and the experiment that fills each place."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.tables.resources import ResourceClasses
from contrastbench.benchmarks.tables.schema import PublishedRow, PublishedTable, SetTestName, Tune
from contrastbench.domains.registry import declaration
from contrastbench.losses.spec import LossSpec

# ends the name of a metric for which something was chosen on the test set
ON_TEST = "_best_epoch_on_test"
QUICK = "-quick"  # ends the name of a suite's quick part


@dataclass(frozen=True)
class Quick:
    """The data sets and seeds of a suite's quick part, which answers in minutes."""

    datasets: list[str]
    seeds: list[int]


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


class Row(PublishedRow):
    """One method of a table: a published row, or one that a sweep file gives."""

    settings: list[dict[str, Any]] = Field([], description="to choose among, instead of a grid")
    printed: dict[str, list[str]] = Field({}, description="published values letter by letter")
    recipe_by_column: dict[str, dict[str, Any]] = Field(
        {}, description="a control's values over the recipe, by column"
    )
    control: str = Field("", description="name of the control that the row is, see `controls`")
    beside: bool = Field(
        False, description="whether it takes the baseline's chosen setting instead of a search"
    )


class Table(PublishedTable):
    """A published table, or what a sweep file makes."""

    name: str = ""
    rows: list[Row] = Field(min_length=1)  # type: ignore[assignment]  # narrower, never appended to
    tiny: bool = False  # a smoke test
    sweep: bool = False  # made of losses and data, which others can join
    grid: dict[str, list[Any]] = Field({}, description="of a sweep, for losses that join it too")
    resources: ResourceClasses = Field({}, description="classes of a sweep's cells, by their needs")
    asked: list[str] = Field([], description="names of rows that `--loss` names")
    joined: list[str] = Field([], description="those of them that the sweep does not list")
    controls: list[str] = Field([], description="names of the controls that a sweep asks for")
    trial_seeds: dict[str, list[int]] = Field(
        {}, description="by column seeds of trials, instead of those of `tune`"
    )
    draft: bool = False  # a suite that is not released
    test: SetTestName | None = None  # over data sets, unless another one is asked for
    quick: Quick | None = None  # the quick part of a suite
    is_quick: bool = False  # the table is that part
    same: dict[str, dict[str, str]] = Field(
        {}, description="by row and column the row that this one is by algebra, see `same`"
    )

    def as_smoke_test(self) -> "Table":
        """Return the table with the tiny recipe of each domain."""
        return self.but(tiny=True)

    @property
    def quotes(self) -> bool:
        """Return whether there are published values beside ours."""
        return any(row.paper for row in self.rows)

    @property
    def budget(self) -> Tune:
        """Return what a selection on validation data may cost."""
        return self.tune or Tune()

    def seeds_of_trials(self, column: str) -> list[int]:
        """Return the seeds that trials of a column have where no fold chooses."""
        return self.trial_seeds.get(column) or self.budget.seeds

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """Seeds that parameters are chosen with, here or in other sweeps: they are no results."""
        own = (seed for seeds in self.trial_seeds.values() for seed in seeds)
        return tuple(dict.fromkeys([*self.budget.seeds, *own]))

    @property
    def unshown_seeds(self) -> set[int]:
        """Seeds that no number is of: of parameters' choice, and of sets' unless the file asks."""
        return {*self.tuning_seeds} | {*parse_seeds(ADMISSION_SEEDS)} - {*self.seeds}

    @property
    def remarks(self) -> list[str]:
        """Return what every answer of the table says first: that it is a draft, or a quick part."""
        name = self.name.removesuffix(QUICK)
        draft = f"{name} is a draft and not released: its sets may change."
        return [draft] * self.draft + [f"{self.title}."] * self.is_quick

    @property
    def is_suite(self) -> bool:
        """Return whether others join the table with seeds of its own, as in a standing one."""
        return self.quick is not None

    @property
    def is_staged(self) -> bool:
        """Return whether parameters are searched in stages."""
        return bool(self.tune and self.tune.search == "staged")

    def runnable(self, row: Row, column: str) -> bool:
        """Return whether the place can be run here; if not, it is quoted."""
        there = row.loss is not None and self.columns[column].dataset is not None
        return there and (not row.recipe_by_column or column in row.recipe_by_column)

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
        original = self.same_as(row, column)
        return next((one for one in self.rows if one.name == original), row)

    def same_as(self, row: Row, column: str) -> str:
        """Return the name of the row that this one is in a column by algebra, or nothing."""
        return self.same.get(row.name, {}).get(column, "")

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
