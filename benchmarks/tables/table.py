"""Published tables, one YAML file each, rendered beside our numbers from records alone."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.catalogue import names as names
from contrastbench.benchmarks.tables.strict_yaml import load_as, wrong_at
from contrastbench.domains.registry import check_domain, declaration, make_recipe
from contrastbench.losses.errors import UserError, unknown


class Strict(BaseModel):
    """Unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Published = Annotated[list[float], Field(min_length=1, max_length=2)]  # [mean] or [mean, std]


class Column(Strict):
    """One dataset and what its training needs; without a dataset it is quoted only."""

    dataset: str | None = None
    domain: str | None = None  # instead of the table's
    metric: str | None = None  # instead of the table's
    recipe: dict[str, Any] = {}
    differs: list[str] = []


class Row(Strict):
    """One method: published values, and how we run it unless it is quoted only."""

    name: str
    loss: str | None = None
    params: dict[str, Any] = {}
    params_by_column: dict[str, dict[str, Any]] = {}
    grid: dict[str, list[Any]] = Field({}, description="values to choose from, instead of params")
    grid_by_column: dict[str, dict[str, list[Any]]] = {}  # over grid
    recipe: dict[str, Any] = {}  # over the column's
    differs: list[str] = []
    paper: dict[str, Published] = {}  # by column
    undecided: dict[str, str] = Field(
        {}, description="why nothing is chosen in a column; set by a selection"
    )


class Protocol(Strict):
    """How the published numbers came about, as far as the paper says; recipes of columns and rows are its too."""

    seeds: int | None = Field(None, ge=1, description="runs behind each value")
    selection: str = Field("", description="how parameters and epochs were chosen")
    recipe: dict[str, Any] = Field(
        {}, description="what is said of training and scoring, in our recipe's terms"
    )
    differs: list[str] = Field([], description="where we do otherwise and no recipe value shows it")


class Tune(Strict):
    """What a selection on validation data may cost; the same for every method."""

    seeds: list[int] = Field(
        [1000, 1001], min_length=1, description="of trials; no shown number is of these"
    )
    trials: int | None = Field(
        None, ge=1, description="settings for each method; default: those of the smallest grid"
    )


class Table(Strict):
    """A published table."""

    name: str = ""
    title: str
    source: str
    notes: str = ""
    decimals: int = Field(ge=0)
    domain: str
    metric: str | None = None  # the one that the domain calls its main one
    recipe: dict[str, Any] = {}
    protocol: Protocol = Protocol()
    columns: dict[str, Column]
    average: str | None = Field(None, description="name of a last column, the mean of all others")
    rows: list[Row]
    seeds: list[int] = [0, 1, 2, 3, 4]  # those of a sweep that names none
    tune: Tune | None = Tune()
    tiny: bool = False  # a smoke test
    selection: str = "paper: parameters as published"

    @property
    def quotes(self) -> bool:
        """Whether there are published values beside ours."""
        return any(row.paper for row in self.rows)


@dataclass(frozen=True)
class Value:
    """A mean with its standard deviation over seeds (ddof 1) and their number."""

    mean: float
    std: float | None = None
    n: int | None = None

    def text(self, decimals: int, wanted: int | None = None) -> str:
        """For people, such as 75.1 ± 0.6 (5), or 75.1 (1 of 5) where more seeds are wanted."""
        std = "" if self.std is None else f" ± {self.std:.{decimals}f}"
        few = f" of {wanted}" if self.n and wanted and self.n < wanted else ""
        return f"{self.mean:.{decimals}f}{std}" + ("" if self.n is None else f" ({self.n}{few})")


@dataclass(frozen=True)
class Entry:
    """One place of a rendered table."""

    row: Row
    column: str
    paper: Value | None
    ours: Value | None
    run: bool  # whether it can be run here, or is quoted only
    seeds: int | None  # behind the paper's value
    quotes: bool = True  # whether the table has published values at all

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return self.ours.mean - self.paper.mean if self.ours and self.paper else None

    def text(self, decimals: int) -> str:
        """The place's text: paper / ours / difference, or the paper's value alone where it is quoted."""
        return " / ".join(filter(None, self.parts(decimals)))

    def parts(self, decimals: int) -> tuple[str, str, str]:
        """The paper's value, ours and the difference, empty where there is none to give."""
        paper = self.paper.text(decimals) if self.paper else "-"
        if not self.run:
            return paper, "", ""
        ours = (
            self.ours.text(decimals, self.seeds if self.paper else None) if self.ours else "missing"
        )
        if not self.quotes:
            return ours, "", ""
        return paper, ours, "" if self.difference is None else f"{self.difference:+.{decimals}f}"


def load(name: str) -> Table:
    """A table by name, or by the path of a user's own file.

    Raises:
        UserError: no table of that name, two of that name, or its file is wrong.
    """
    path = catalogue.find(name)
    table = load_as(path, Table)
    check(table, path)
    selection = table.selection if table.quotes else "none: parameters as the file gives them"
    return table.model_copy(update={"name": path.stem, "selection": selection})


def check(table: Table, path: Path) -> None:
    """Raise for names in a table's file that name nothing, or two things."""
    for key in ("name", "selection", "tiny"):
        if key in table.model_fields_set:
            raise wrong_at(
                path,
                [key],
                "a file has no such key; a table's name is that of its file, without .yaml",
            )
    for where, domain in domains(table):
        try:
            check_domain(domain)
        except UserError as error:
            raise wrong_at(path, where, error) from None
    seen: set[str] = set()
    for i, row in enumerate(table.rows):
        if row.name in seen:
            raise wrong_at(
                path, ["rows", i, "name"], f"two rows are named {row.name!r}: rename one"
            )
        seen.add(row.name)
        check_places(table, i, path)
        for key, known in (
            ("paper", [*table.columns, table.average]),
            ("params_by_column", [*table.columns]),
            ("grid_by_column", [*table.columns]),
        ):
            for column in getattr(row, key):
                if column not in known:
                    raise wrong_at(
                        path,
                        ["rows", i, key, column],
                        unknown("column", column, filter(None, known)),
                    )


def check_places(table: Table, i: int, path: Path) -> None:
    """Raise unless a row's loss exists and takes its parameters, and its recipes are some of their domains."""
    row = table.rows[i]
    for column in table.columns:
        if runnable(table, row, column):
            work = experiment(table, row, column)
            try:
                _ = work.identity
            except UserError as error:
                raise wrong_at(path, ["rows", i, "loss"], error) from None
            try:
                _ = work.full_recipe
            except UserError as error:
                raise wrong_at(path, wrong_recipe(table, i, column), error) from None


def wrong_recipe(table: Table, i: int, column: str) -> list[int | str]:
    """The recipe without which the others of a place would be right."""
    parts: list[tuple[list[int | str], dict[str, Any]]] = [
        (["recipe"], table.recipe),
        (["columns", column, "recipe"], table.columns[column].recipe),
        (["rows", i, "recipe"], table.rows[i].recipe),
    ]
    for where, left_out in parts:
        rest = {
            key: value for _, part in parts if part is not left_out for key, value in part.items()
        }
        with suppress(UserError):
            make_recipe(table.columns[column].domain or table.domain, rest)
            return where
    return ["rows", i]


def domains(table: Table) -> Iterator[tuple[list[int | str], str]]:
    """Where a table names domains, and which."""
    yield ["domain"], table.domain
    for name, column in table.columns.items():
        if column.domain is not None:
            yield ["columns", name, "domain"], column.domain


def entries(table: Table, results: Path) -> Iterator[list[Entry]]:
    """The table's places, row by row."""
    for row in table.rows:
        line = [entry(table, row, column, results) for column in table.columns]
        yield [*line, average(table, row, line)] if table.average else line


def entry(table: Table, row: Row, column: str, results: Path) -> Entry:
    """One place."""
    run = runnable(table, row, column)
    mine = ours(table, row, column, results) if run else None
    return Entry(row, column, published(row, column), mine, run, table.protocol.seeds, table.quotes)


def runnable(table: Table, row: Row, column: str) -> bool:
    """Whether the place can be run here; if not, it is quoted."""
    return row.loss is not None and table.columns[column].dataset is not None


def published(row: Row, column: str) -> Value | None:
    """The paper's value."""
    if column not in row.paper:
        return None
    mean, *std = row.paper[column]
    return Value(mean, std[0] if std else None)


def average(table: Table, row: Row, line: list[Entry]) -> Entry:
    """The last column; ours only if no column is missing, with the number of seeds of the column that has fewest."""
    assert table.average is not None, "there is a last column"
    values = [entry.ours for entry in line if entry.ours]
    fewest = min((value.n or 0 for value in values), default=0)
    mine = (
        Value(fmean(value.mean for value in values), n=fewest) if len(values) == len(line) else None
    )
    paper = published(row, table.average)
    return Entry(
        row,
        table.average,
        paper,
        mine,
        any(entry.run for entry in line),
        table.protocol.seeds,
        table.quotes,
    )


def ours(table: Table, row: Row, column: str, results: Path) -> Value | None:
    """Mean and standard deviation over the seeds that have an ok record of exactly this cell; None without one.

    Raises:
        UserError: no such metric in the records.
    """
    metric = table.columns[column].metric or table.metric
    found = list(experiment(table, row, column).ok_by_seed(results).values())
    for record in found:
        if metric is not None and metric not in record["metrics"]:
            raise unknown(f"metric of column {column!r}", metric, record["metrics"])
    values = [record["metrics"][metric or record["main"]] for record in found]
    if not values:
        return None
    return Value(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def experiment(table: Table, row: Row, column: str) -> Experiment:
    """What fills a place in: for rows with a loss in columns with a dataset."""
    what = table.columns[column]
    assert row.loss is not None, "quoted rows are not run"
    assert what.dataset is not None, "quoted columns are not run"
    params = {**row.params, **row.params_by_column.get(column, {})}
    domain = what.domain or table.domain
    recipe = {
        **table.recipe,
        **what.recipe,
        **row.recipe,
        **(declaration(domain).tiny if table.tiny else {}),
    }
    tuned = tuple(table.tune.seeds) if table.tune else ()
    return Experiment(
        domain, what.dataset, row.loss, params, recipe, tuned, column in row.undecided
    )
