"""Tables: columns, rows, and the places where they meet."""

from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

from pydantic import Field

from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.tables import places
from contrastbench.benchmarks.tables.schema import PublishedTable, QuickPart, Row, Tune
from contrastbench.benchmarks.tables.scores import Place, Setup, tiny_recipe
from contrastbench.domains.recipe import laid_over
from contrastbench.errors import UserError, unknown

# ends the name of a metric for which something was chosen on the test set
ON_TEST = "_best_epoch_on_test"
QUICK = "-quick"  # ends the name of a suite's quick part
NO_QUICK_PART = (
    "declares no quick part: leave --quick out (bench sweep --tiny runs a little of all)"
)


class Selection(StrEnum):
    """The way in which a table's parameters are chosen."""

    PAPER = "paper"
    VALIDATION = "validation"
    NONE = "none"  # a file gives them, and no paper does


SELECTIONS = (Selection.PAPER.value, Selection.VALIDATION.value)  # that can be asked for


class Table(PublishedTable):
    """A published table, or what a sweep file makes."""

    name: str = ""
    called: str = ""  # what a command takes for it: a name, or the path of its file
    rows: list[Row] = Field(min_length=1)  # type: ignore[assignment]  # narrower, never appended to
    tiny: bool = False  # a smoke test
    sweep: bool = False  # made of losses and data, which others can join
    apart: bool = False  # rows that are one loss by algebra have cells of their own
    asked: list[str] = Field([])
    """names of rows that `--loss` names"""
    joined: list[str] = Field([])
    """those of them that the sweep does not list"""
    controls: list[str] = Field([])
    """names of the controls that a sweep asks for"""
    draft: bool = False  # a suite that is not released
    quick: QuickPart | None = None  # the quick part of a suite
    is_quick: bool = False  # the table is that part

    @property
    def quotes(self) -> bool:
        """Return whether there are published values beside ours."""
        return any(row.paper for row in self.rows)

    @cached_property
    def budget(self) -> Tune:
        return self.tune or Tune()

    def seeds_of(self, column: str) -> list[int]:
        return self.columns[column].seeds or self.seeds

    @property
    def tuning_seeds(self) -> tuple[int, ...]:
        """Seeds that parameters are chosen with, here or in other sweeps: they are no results."""
        return tuple(self.budget.seeds)

    @cached_property
    def unshown_seeds(self) -> set[int]:
        """Seeds that no number is of: of parameters' choice, and of sets' unless the file asks."""
        return {*self.tuning_seeds} | {*parse_seeds(ADMISSION_SEEDS)} - {*self.seeds}

    @property
    def remarks(self) -> list[str]:
        """Return what every answer of the table says first: that it is a draft, or a quick part."""
        name = self.name.removesuffix(QUICK)
        draft = f"{name} is a draft and not released: its sets may change."
        return [draft] * self.draft + [f"{self.title}."] * self.is_quick

    @cached_property
    def is_suite(self) -> bool:
        """Return whether others join the table with seeds of its own, as in a standing one."""
        return self.quick is not None

    @property
    def is_suite_of_sets(self) -> bool:
        """Return whether verdicts are over sets alone, as few seeds tell nothing of single ones."""
        return self.is_suite and self.searches

    @property
    def searches(self) -> bool:
        """Return whether each loss searches among points of its own ranges, and has no grid."""
        return self.sweep and self.tune is not None

    @property
    def selection(self) -> Selection:
        """The selection that the table has if none is asked for."""
        if self.searches:
            return Selection.VALIDATION
        return Selection.NONE if self.sweep or not self.quotes else Selection.PAPER

    def checked_selection(self, asked: str | None, seeds: Sequence[int] = ()) -> Selection:
        """Return the selection that is asked for, or the table's own.

        `paper` takes the parameters that the paper names; most were chosen by the very score that
        is reported. `validation` asks the search of each place.
        """
        if asked not in (None, *SELECTIONS):
            raise unknown("selection", asked or "", SELECTIONS)
        if shared := sorted(set(seeds) & set(self.tuning_seeds)):
            raise UserError(
                f"seeds {shared} choose the parameters, so they cannot confirm them: give others "
                "with --seeds"
            )
        if Selection.VALIDATION not in (asked, self.selection):
            return self.selection
        if asked == Selection.PAPER:
            raise UserError(
                f"{self.name} has no published parameters, it chooses them on validation data: "
                "leave --selection out"
            )
        if not (self.searches or any(row.grid or row.grid_by_column for row in self.rows)):
            raise UserError(
                f"{self.name} declares no grid to choose from: give its rows a grid, or "
                "--selection paper"
            )
        return Selection.VALIDATION

    @cached_property
    def places(self) -> dict[tuple[str, str], Place]:
        """Return what can be run here, by row and column: all that fills it, made once."""
        equal = self.sweep and not self.apart
        setups = {column: setup for column in self.columns if (setup := self.setup_of(column))}
        columns = {
            column: places.places_in(
                self.name, self.rows, setup, self.budget, searched=self.searches, equal=equal
            )
            for column, setup in setups.items()
        }
        return {
            (row.name, column): some[row.name]
            for row in self.rows
            for column, some in columns.items()
            if row.name in some
        }

    def setup_of(self, column: str) -> Setup | None:
        """Return what the places of a column share; None: it is only quoted."""
        about, domain = self.columns[column], self.domain_of(column)
        if about.dataset is None:
            return None
        small = tiny_recipe(domain) if self.tiny else {}
        recipe, seeds = laid_over(self.recipe, about.recipe), self.budget.seeds
        shown = self.seeds_of(column) if self.is_suite else ()
        return Setup(column, domain, about.dataset, recipe, small, seeds, shown)
