"""The keys of YAML files, of published tables, their protocols and sweeps, and rows of programs.

A program adds to these what no file says, see `tables.table`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from contrastbench.benchmarks.records.seeds import SEED_LIMIT
from contrastbench.domains.strict import Strict
from contrastbench.losses.spec import NONE

Params = dict[str, Any]
# what is not here, or where it is run instead, such as "loss swav: of prototypes"
LACKS = "loss|encoder|pairing|views|preset|data|metric|printed|elsewhere"
OPEN = "open"
PRINTED = r"(paper|code|reported by others) \(.+\)"
Printed = Annotated[str, Field(pattern=f"^{PRINTED}$")]
StatementSource = Annotated[str, Field(pattern=f"^({PRINTED}|{OPEN})$")]
StatementKind = Literal["recipe", "params", "evaluation"]
STATEMENT_KINDS: tuple[StatementKind, ...] = ("recipe", "params", "evaluation")
# by source: the keys beside it whose values are printed there
Marks = dict[Printed, list[str]]
Seed = Annotated[int, Field(ge=0, lt=SEED_LIMIT)]
Published = Annotated[list[float], Field(min_length=1, max_length=2)]  # [mean] or [mean, std]


class Column(Strict):
    """One dataset with its training settings; without a dataset the column is only quoted."""

    dataset: str | None = None
    domain: str | None = None  # instead of the table's
    metric: str | None = None  # instead of the table's
    recipe: dict[str, Any] = Field({})
    recipe_from: Marks = Field({})
    seeds: list[Seed] = Field([])
    """some of the table's seeds, instead of all"""


class PublishedRow(Strict):
    """One method: published values, and its settings unless the row is only quoted."""

    name: str
    loss: str | None = None
    quoted: str = Field("", pattern=rf"^(({LACKS}) \S+: .+)?$")
    """why it is not run"""
    params: dict[str, Any] = Field({})
    params_by_column: dict[str, dict[str, Any]] = Field({})
    grid: dict[str, list[Any]] = Field({})
    """values to choose from, instead of params"""
    grid_by_column: dict[str, dict[str, list[Any]]] = Field({})  # over grid
    recipe: dict[str, Any] = Field({})  # over the column's
    params_from: Marks = Field({})
    recipe_from: Marks = Field({})
    paper: dict[str, Published] = Field({})  # by column


@dataclass(frozen=True)
class Setting:
    """One trial of a row: parameters of its loss, and values over the row's recipe."""

    params: dict[str, Any]
    recipe: dict[str, Any] = field(default_factory=dict)


class Row(PublishedRow):
    """One method of a table: a published row, or one that a sweep file gives."""

    printed: dict[str, list[str]] = Field({})
    """published values letter by letter"""
    recipe_by_column: dict[str, dict[str, Any]] = Field({})
    """values over the recipe, by the columns that the row runs in"""
    control: str = ""
    """name of the control that the row is, see `controls`"""
    beside: bool = False
    """whether it takes the baseline's chosen setting instead of a search"""

    def runs_in(self, column: str) -> bool:
        """Return whether the row has something to run in a column that has data."""
        there = not self.recipe_by_column or column in self.recipe_by_column
        return self.loss is not None and there


def baseline(rows: Iterable[Row]) -> Row | None:
    """Return the first row of InfoNCE, or else the first that is trained; None: there is none."""
    trained = [row for row in rows if row.loss not in (None, NONE) and not row.control]
    return next((row for row in trained if row.loss == "infonce"), next(iter(trained), None))


class Tune(Strict):
    """The budget of a selection on validation data, the same for every method."""

    seeds: list[Seed] = Field([1000, 1001, 1002], min_length=1)
    """of trials; no shown number is of these"""
    trials: int | None = Field(None, ge=1, le=1000)  # more are a slip of the hand
    """settings for each method; default: those of the smallest grid, or 16"""


class StatedDeviation(Strict):
    """A deviation that no value shows."""

    what: str
    paper: str
    ours: str
    why: str


class Statement(Strict):
    """One source's statement on some places of a table, or on all.

    Under `from: open` the source says nothing, and the values are why ours are what they are.
    """

    source: StatementSource = Field(alias="from")
    """paper (B.3), code (main.py), open"""
    rows: list[str] = Field([])
    columns: list[str] = Field([])
    datasets: list[str] = Field([])
    domain: str | None = None
    recipe: dict[str, Any] = Field({})
    """by key of our recipe"""
    params: dict[str, Any] = Field({})
    """by parameter of the loss"""
    evaluation: dict[str, Any] = Field({})
    """by setting of our scoring"""
    why: dict[str, str] = Field({})
    """by key: why ours is another value"""
    differs: list[StatedDeviation] = Field([])

    @property
    def partial(self) -> bool:
        return bool(self.rows or self.columns or self.datasets)

    def holds(self, row: str, column: str, domain: str, dataset: str) -> bool:
        return all(
            not named or here in named
            for named, here in (
                (self.rows, row),
                (self.columns, column),
                (self.datasets, dataset),
                ([self.domain] if self.domain else [], domain),
            )
        )


class Protocol(Strict):
    """The protocol of published numbers: the last statement on a key holds."""

    use: list[str] = Field([])
    """files of protocols/, whose statements come first"""
    facts: list[Statement] = Field([])

    @property
    def seeds(self) -> int | None:
        """Return the runs behind each value, if a statement on the whole table says so."""
        for said in reversed(self.facts):
            if "seeds" in said.evaluation and not said.partial:
                return None if said.source == OPEN else said.evaluation["seeds"]
        return None


class SharedProtocol(Strict):
    """A file of protocols/: what several tables say of one domain, or of some of its datasets."""

    domain: str
    datasets: list[str] = Field([])
    facts: list[Statement]


class PublishedTable(Strict):
    """A published table, or one of a user's own with the same keys."""

    title: str
    source: str
    notes: str = ""
    findings: dict[str, str] = Field({})
    """on our numbers, by their digest"""
    decimals: int = Field(ge=0, le=10)
    domain: str
    metric: str | None = None  # the one that the domain calls its main one
    recipe: dict[str, Any] = Field({})
    protocol: Protocol = Protocol()
    columns: dict[str, Column] = Field(min_length=1)
    average: str | None = None
    """name of a last column, the mean of all others"""
    rows: list[PublishedRow] = Field(min_length=1)
    seeds: list[Seed] = Field([0, 1, 2, 3, 4])  # those of a sweep that names none
    tune: Tune | None = Tune()

    def domain_of(self, column: str) -> str:
        return self.columns[column].domain or self.domain

    def metric_of(self, column: str) -> str | None:
        """The metric that the file gives a column; None: the domain's main one."""
        return self.columns[column].metric or self.metric


class DomainPart(Strict):
    """The datasets and the recipe of one domain in a sweep."""

    datasets: list[str | dict[str, Params | str]] | None = None
    """default: the domain's embedded one; {SET: {..}} adds to its recipe, and {SET: {}, name: Mine}
    names its column"""
    recipe: Params = Field({})
    seeds: str | int | list[int] | None = None
    """instead of the sweep's"""


class QuickPart(Strict):
    """The data sets and seeds of the quick part of a sweep."""

    datasets: list[str]
    seeds: str | int | list[int] = "0-2"


class SweepFile(Strict):
    """The keys of a sweep file, a short YAML file that says which losses meet which data.

    seeds: 0-4                         # or [0, 1, 2]; this is the default
    domains:
      graph: {datasets: [MUTAG, NCI1: {limit: 1000}], recipe: {augmentation: random4}}
                                       # {csv:x.csv: {}, name: X}: the column's name in tables
      tabular: {}                      # the domain's embedded dataset, its default recipe
    losses: [all, none, {mine.py:Mine: {margin: 0.2}}]   # all: those that need no classes
                                       # {hcl: {}, name: HCL}: the row's name in tables
    tune: {trials: 16}                 # choose settings by validation data
    controls: true                     # rows that must come out worse or better than InfoNCE;
                                       # or a list of their names
    only: {hcl: [MUT, DD]}             # a row that runs in columns with a part in their name
    quick: {datasets: [MUTAG], seeds: 0-2}    # the part that `--quick` asks for
    draft: true                        # not released: every answer says so
    extends: other.yaml                # all of another sweep, and what this file adds to it

    A domain may have `seeds` instead of the sweep's.
    """

    title: str = ""
    source: str = "records"
    notes: str = ""
    findings: dict[str, str] = Field({})  # as those of a published table
    extends: str | None = None
    seeds: str | int | list[int] = "0-4"
    domains: dict[str, DomainPart] = Field({})
    losses: list[str | dict[str, Params | str]] = Field([])
    tune: Tune | None = None
    decimals: int = Field(2, ge=0, le=10)
    controls: bool | list[str] = False
    """rows that must come out worse or better, see `tables.controls`"""
    only: dict[str, Annotated[list[str], Field(min_length=1)]] = Field({})
    """rows that run in some columns alone, by parts of the columns' names"""
    quick: QuickPart | None = None
    draft: bool = False
    """a suite that is not released"""
