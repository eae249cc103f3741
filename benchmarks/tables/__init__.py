"""Published tables, one YAML file each, rendered beside our numbers from records alone."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from contrastbench.benchmarks import table_files
from contrastbench.benchmarks.experiments import Experiment
from contrastbench.benchmarks.strict_yaml import load_as
from contrastbench.benchmarks.table_files import names
from contrastbench.losses.errors import UserError, unknown


class Strict(BaseModel):
    """Unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Column(Strict):
    """One dataset and what its training needs; without a dataset it is quoted only."""

    dataset: str | None = None
    domain: str | None = None  # instead of the table's
    metric: str | None = None  # instead of the table's
    recipe: dict[str, Any] = {}


class Row(Strict):
    """One method: published values, and how we run it unless it is quoted only."""

    name: str
    loss: str | None = None
    params: dict[str, Any] = {}
    params_by_column: dict[str, dict[str, Any]] = {}
    recipe: dict[str, Any] = {}  # over the column's
    paper: dict[str, list[float]] = {}  # column -> [mean] or [mean, std]


class Table(Strict):
    """A published table."""

    name: str = ""
    title: str
    source: str
    notes: str = ""
    decimals: int
    domain: str
    metric: str | None = None  # the one that the domain calls its main one
    recipe: dict[str, Any] = {}
    columns: dict[str, Column]
    average: str | None = Field(None, description="name of a last column, the mean of all others")
    rows: list[Row]
    seeds: list[int] = [0, 1, 2, 3, 4]  # those of a sweep that names none


@dataclass(frozen=True)
class Value:
    """A mean with its standard deviation over seeds (ddof 1) and their number."""

    mean: float
    std: float | None = None
    n: int | None = None

    def text(self, decimals: int) -> str:
        """For people, such as 75.1 ± 0.6 (5)."""
        std = "" if self.std is None else f" ± {self.std:.{decimals}f}"
        return f"{self.mean:.{decimals}f}{std}" + ("" if self.n is None else f" ({self.n})")


@dataclass(frozen=True)
class Entry:
    """One place of a rendered table."""

    row: Row
    column: str
    paper: Value | None
    ours: Value | None
    run: bool  # whether it can be run here, or is quoted only

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return self.ours.mean - self.paper.mean if self.ours and self.paper else None

    def text(self, decimals: int) -> str:
        """The place's text: paper / ours / difference, or the paper's value alone where it is quoted."""
        paper = self.paper.text(decimals) if self.paper else "-"
        if not self.run:
            return paper
        ours = self.ours.text(decimals) if self.ours else "missing"
        return " / ".join([paper, ours] + ([] if self.difference is None else [f"{self.difference:+.{decimals}f}"]))


def load(name: str) -> Table:
    """A table by name, or by the path of a user's own file.

    Raises:
        UserError: no table of that name, two of that name, or its file is wrong.
    """
    path = table_files.find(name)
    table = load_as(path, Table)
    if "name" in table.model_fields_set:
        raise UserError(f"{path}: a table's name is that of its file, without .yaml: remove the key 'name'")
    return table.model_copy(update={"name": path.stem})


def entries(table: Table, results: Path) -> Iterator[list[Entry]]:
    """The table's places, row by row."""
    for row in table.rows:
        line = [entry(table, row, column, results) for column in table.columns]
        yield [*line, average(table.average, row, line)] if table.average else line


def entry(table: Table, row: Row, column: str, results: Path) -> Entry:
    """One place."""
    run = row.loss is not None and table.columns[column].dataset is not None
    mine = ours(table, row, column, results) if run else None
    return Entry(row, column, published(row, column), mine, run)


def published(row: Row, column: str) -> Value | None:
    """The paper's value."""
    if column not in row.paper:
        return None
    mean, *std = row.paper[column]
    return Value(mean, std[0] if std else None)


def average(name: str, row: Row, line: list[Entry]) -> Entry:
    """The last column; ours only if no column is missing."""
    means = [entry.ours.mean for entry in line if entry.ours]
    mine = Value(fmean(means)) if len(means) == len(line) else None
    return Entry(row, name, published(row, name), mine, row.loss is not None)


def ours(table: Table, row: Row, column: str, results: Path) -> Value | None:
    """Mean and standard deviation over the seeds that have an ok record of exactly this cell; None without one."""
    metric = table.columns[column].metric or table.metric
    found = experiment(table, row, column).ok_by_seed(results)
    values = [record["metrics"][metric or record["main"]] for record in found.values()]
    if not values:
        return None
    return Value(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def experiment(table: Table, row: Row, column: str) -> Experiment:
    """What fills a place in: for rows with a loss in columns with a dataset."""
    what = table.columns[column]
    assert row.loss is not None, "quoted rows are not run"
    assert what.dataset is not None, "quoted columns are not run"
    params = {**row.params, **row.params_by_column.get(column, {})}
    recipe = {**table.recipe, **what.recipe, **row.recipe}
    return Experiment(what.domain or table.domain, what.dataset, row.loss, params, recipe)


def render(table: Table, results: Path, format_: str) -> str:
    """The table as text.

    Raises:
        UserError: unknown format.
    """
    formats = {"md": markdown, "csv": comma_separated}
    if format_ not in formats:
        raise unknown("format", format_, formats)
    return formats[format_](table, list(entries(table, results)))


def markdown(table: Table, lines: list[list[Entry]]) -> str:
    """A table for people."""
    header = ["Method", *(entry.column for entry in lines[0])]
    body = [[line[0].row.name, *(entry.text(table.decimals) for entry in line)] for line in lines]
    legend = "Where we run the method: paper / ours mean ± std over seeds (number of seeds) / difference."
    rows = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *body)]
    return "\n".join(
        [f"### {table.name}: {table.title}", "", *rows, "", legend, f"Source: {table.source}. {table.notes}", ""]
    )


def comma_separated(table: Table, lines: list[list[Entry]]) -> str:
    """A table for programs: one line for each place."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "table",
            "method",
            "column",
            "loss",
            "paper_mean",
            "paper_std",
            "ours_mean",
            "ours_std",
            "ours_seeds",
            "difference",
        ]
    )
    for entry in (entry for line in lines for entry in line):
        paper, mine = entry.paper or Value(float("nan")), entry.ours or Value(float("nan"))
        numbers = [paper.mean, paper.std, mine.mean, mine.std, mine.n, entry.difference]
        cells = ["" if v is None or v != v else v if isinstance(v, int) else f"{v:.4f}" for v in numbers]
        writer.writerow([table.name, entry.row.name, entry.column, entry.row.loss or "", *cells])
    return out.getvalue()


def write_all(results: Path) -> Iterator[Path]:
    """Every table in both formats, into the results folder."""
    for name in names():
        for format_ in ("md", "csv"):
            path = results / f"{name}.{format_}"
            path.write_text(render(load(name), results, format_), encoding="utf-8")
            yield path
