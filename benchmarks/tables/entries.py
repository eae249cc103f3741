"""A table's places, filled in from records alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from contrastbench.benchmarks.records.store import Record, json_digest
from contrastbench.benchmarks.tables.replication import Back, own_first
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.errors import unknown
from contrastbench.losses.spec import NONE


@dataclass(frozen=True)
class Value:
    """A mean with its standard deviation over seeds (ddof 1) and their number."""

    mean: float
    std: float | None = None
    n: int | None = None
    printed: tuple[str, ...] = ()  # mean and deviation as a paper has them, letter by letter

    def text(self, decimals: int, wanted: int | None = None) -> str:
        """Format the value, such as 75.1 ± 0.6 (5), or 75.1 (1 of 5) if more seeds are wanted."""
        if self.printed:
            return " ± ".join(self.printed)
        std = "" if self.std is None else f" ± {self.std:.{decimals}f}"
        few = f" of {wanted}" if self.n and wanted and self.n < wanted else ""
        return f"{self.mean:.{decimals}f}{std}" + ("" if self.n is None else f" ({self.n}{few})")


@dataclass(frozen=True)
class Entry:
    """One place of a rendered table, with both values."""

    line: Line
    column: str
    paper: Value | None
    ours: Value | None
    run: bool  # whether it can be run here, or is quoted only
    seeds: int | None  # behind the paper's value
    cell: ResolvedCell | None = None  # an average has none
    quotes: bool = True  # whether the table has published values at all
    failure: str = ""  # how seeds failed, such as diverged (2 of 5)

    @property
    def same_as(self) -> str:
        """Return the row that has the same numbers, as both losses are one by algebra; or ""."""
        return self.cell.same_as if self.cell else ""

    @property
    def data(self) -> str:
        """Return the hash of the data that ours is of, or nothing."""
        return next(iter(self.cell.ok), "") if self.cell else ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return self.ours.mean - self.paper.mean if self.ours and self.paper else None

    @property
    def is_quoted(self) -> bool:
        """Return whether the place has the paper's value alone, and nothing is run here."""
        return not self.run and self.paper is not None

    @property
    def failed(self) -> bool:
        """Return whether it was run, and no seed has a number."""
        return self.ours is None and bool(self.failure)

    @property
    def back(self) -> Back | None:
        """Whether the paper's value came back; None where nothing tells, as of one seed."""
        if not (self.paper and self.ours and self.ours.std is not None and self.ours.n):
            return None
        known = self.paper.std is not None and self.seeds
        printed_error = (self.paper.std or 0.0) / sqrt(self.seeds or 1) if known else None
        mine = self.ours.mean, self.ours.std / sqrt(self.ours.n)
        return Back(self.line.name, self.column, *mine, self.paper.mean, printed_error)

    def text(self, decimals: int) -> str:
        """Return the text of the place.

        Paper / ours / difference, or the paper's value alone, in italics, where it is quoted.
        """
        text = " / ".join(filter(None, self.parts(decimals)))
        return f"*{text}*" if self.is_quoted else text

    def parts(self, decimals: int) -> tuple[str, str, str]:
        """The paper's value, ours and the difference, empty where there is none to give."""
        paper = self.paper.text(decimals) if self.paper else "-"
        if not self.run:
            return paper, "", ""
        number = self.ours.text(decimals, self.seeds if self.paper else None) if self.ours else ""
        ours = ", ".join(filter(None, (number, self.failure))) or "missing"
        ours += f", the same as {self.same_as}" * bool(self.same_as)
        if not self.quotes:
            return ours, "", ""
        return paper, ours, "" if self.difference is None else signed(self.difference, decimals)


def signed(value: float | None, decimals: int) -> str:
    """Format a number with its sign, unless it rounds to zero.

    >>> signed(2.25, 2), signed(-0.71, 1), signed(-0.01, 1), signed(None, 1)
    ('+2.25', '-0.7', '0.0', '-')
    """
    text = "-" if value is None else f"{value:+.{decimals}f}"
    return text[1:] if text[1:] and not float(text) else text


def entries(resolved: Resolved) -> Iterator[list[Entry]]:
    """The table's places, row by row."""
    for line in resolved.lines:
        shown = [entry(resolved, line, column) for column in resolved.table.columns]
        yield [*shown, average_entry(resolved, line, shown)] if resolved.table.average else shown


def digest(lines: Iterable[Iterable[Entry]]) -> str:
    """Return twelve digits that tell our numbers from others: findings are on those alone."""
    some = [(at.line.name, at.column, at.ours) for line in lines for at in line if at.ours]
    numbers = [[row, column, f"{ours.mean:.4f}", ours.n] for row, column, ours in some]
    return json_digest(numbers)[:12] if numbers else ""


def entry(resolved: Resolved, line: Line, column: str) -> Entry:
    """Return one place of a table with both values."""
    table, cell = resolved.table, line.cells.get(column)
    paper = published_value(line, column)
    mine = our_value(resolved, column, list(cell.records.values())) if cell else None
    about = cell is not None, table.protocol.seeds, cell, table.quotes
    return Entry(line, column, paper, mine, *about, cell.failure if cell else "")


def published_value(line: Line, column: str) -> Value | None:
    """Return the value that the paper prints for a row in a column."""
    row = line.row
    if column not in row.paper:
        return None
    mean, *std = row.paper[column]
    return Value(mean, std[0] if std else None, printed=tuple(row.printed.get(column, ())))


def average_entry(resolved: Resolved, line: Line, others: list[Entry]) -> Entry:
    """Return the average over the columns, for the last column.

    Ours only if no column is missing or failed, with the seeds of the column that has fewest.
    """
    table = resolved.table
    assert table.average is not None, "there is a last column"
    values = [entry.ours for entry in others if entry.ours]
    fewest = min((value.n or 0 for value in values), default=0)
    mine = (
        Value(fmean(value.mean for value in values), n=fewest)
        if len(values) == len(others)
        else None
    )
    paper = published_value(line, table.average)
    failed = ", ".join(entry.column for entry in others if entry.failed)
    return Entry(
        line,
        table.average,
        paper,
        mine,
        any(entry.run for entry in others),
        table.protocol.seeds,
        quotes=table.quotes,
        failure=f"failed on {failed}" if failed else "",
    )


def shown_value(resolved: Resolved, column: str, record: Record) -> float:
    """Return the value that the column shows of a record."""
    name = resolved.metrics[column] or record["main"]
    if name not in record["metrics"]:
        raise unknown(f"metric of column {column!r}", name, record["metrics"])
    return float(record["metrics"][name])


def our_value(resolved: Resolved, column: str, records: Sequence[Record]) -> Value | None:
    """Return mean and deviation over the place's ok records, one a seed; None without one."""
    values = [shown_value(resolved, column, record) for record in records]
    if not values:
        return None
    std = stdev(values) if len(values) > 1 else None
    return Value(fmean(values), std, len(values))


def backs(lines: Iterable[Iterable[Entry]], table: str) -> list[Back]:
    """Return the published values that ours can tell of, those of the paper's own method first.

    Rows without a training are controls, which are not counted.
    """
    trained = (entry for line in lines for entry in line if entry.line.row.loss != NONE)
    return own_first((entry.back for entry in trained if entry.back), table)
