"""A table's places, filled in from records alone, and whether published values came back.

One came back where ours and the printed value are at most two standard errors of their difference
apart. A paper that prints no deviation, or not over how many runs, has no error that is known:
there ours alone counts. A single outlying seed moves our mean, and widens its error so much that a
large miss passes.

Errors may be so large that nearly any printed value would come back. Where two of them are more
than 1.5 points and the value is within them, it is too wide to tell. The four papers' graph tables
put their own method 0.4 to 3.4 points above the baseline, and half of these gains are below 0.9.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, stdev

from contrastbench.benchmarks.records.store import Record, json_digest
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.errors import check_known
from contrastbench.losses.spec import NONE

CAME_BACK, MISSED, TOO_WIDE = "yes", "no", "too wide to tell"
WIDEST = 1.5  # points to each side that still tell
MAX_STANDARD_ERRORS = 2.0  # standard errors that a value may be away


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
        return next(iter(self.cell.ok), "") if self.cell else ""

    @property
    def difference(self) -> float | None:
        return self.ours.mean - self.paper.mean if self.ours and self.paper else None

    @property
    def is_quoted(self) -> bool:
        """Return whether the place has the paper's value alone, and nothing is run here."""
        return not self.run and self.paper is not None

    @property
    def printed_error(self) -> float | None:
        """Return the standard error of the paper's value; None: it is not known."""
        if self.paper is None or self.paper.std is None or not self.seeds:
            return None
        return self.paper.std / sqrt(self.seeds)

    @property
    def back(self) -> str:
        """Return whether the paper's value came back; "" where nothing tells, as of one seed."""
        if not (self.paper and self.ours and self.ours.std is not None and self.ours.n):
            return ""
        error = hypot(self.ours.std / sqrt(self.ours.n), self.printed_error or 0.0)
        allowed = MAX_STANDARD_ERRORS * error
        if abs(self.ours.mean - self.paper.mean) > allowed:
            return MISSED
        return TOO_WIDE if allowed > WIDEST else CAME_BACK

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
    for line in resolved.lines:
        shown = [entry(resolved, line, column) for column in resolved.table.columns]
        yield [*shown, average_entry(resolved, line, shown)] if resolved.table.average else shown


def digest(lines: Iterable[Iterable[Entry]]) -> str:
    """Return twelve digits that tell our numbers from others: findings are on those alone."""
    some = [(at.line.name, at.column, at.ours) for line in lines for at in line if at.ours]
    numbers = [[row, column, f"{ours.mean:.4f}", ours.n] for row, column, ours in some]
    return json_digest(numbers)[:12] if numbers else ""


def entry(resolved: Resolved, line: Line, column: str) -> Entry:
    table, cell = resolved.table, line.cells.get(column)
    values = [shown_value(resolved, column, r) for r in (cell.records.values() if cell else ())]
    std = stdev(values) if len(values) > 1 else None
    ours = Value(fmean(values), std, len(values)) if values else None
    about = cell is not None, table.protocol.seeds, cell, table.quotes
    paper = published_value(line, column)
    return Entry(line, column, paper, ours, *about, cell.failure if cell else "")


def published_value(line: Line, column: str) -> Value | None:
    if column not in line.row.paper:
        return None
    mean, *std = line.row.paper[column]
    printed = tuple(line.row.printed.get(column, ()))
    return Value(mean, std[0] if std else None, printed=printed)


def average_entry(resolved: Resolved, line: Line, others: list[Entry]) -> Entry:
    """Return the average over the columns, for the last column.

    Ours only if no column is missing or failed, with the seeds of the column that has fewest.
    """
    table = resolved.table
    assert table.average is not None, "there is a last column"
    values = [entry.ours for entry in others if entry.ours]
    fewest = min((value.n or 0 for value in values), default=0)
    whole = len(values) == len(others)
    ours = Value(fmean(value.mean for value in values), n=fewest) if whole else None
    failed = ", ".join(entry.column for entry in others if entry.failure and not entry.ours)
    return Entry(
        *(line, table.average, published_value(line, table.average), ours),
        any(entry.run for entry in others),
        table.protocol.seeds,
        quotes=table.quotes,
        failure=f"failed on {failed}" * bool(failed),
    )


def shown_value(resolved: Resolved, column: str, record: Record) -> float:
    name = resolved.metrics[column] or record["main"]
    check_known(f"metric of column {column!r}", name, record["metrics"])
    return float(record["metrics"][name])


def backs(lines: Iterable[Iterable[Entry]], table: str) -> list[Entry]:
    """Return the places whose published value ours can tell of, the paper's own method first.

    A table's name begins with that method's. Rows without a training are controls, which are not
    counted.
    """
    own = plain(table.partition("-")[0])
    trained = (entry for line in lines for entry in line if entry.line.row.loss != NONE)
    told = (entry for entry in trained if entry.back)
    return sorted(told, key=lambda entry: own not in plain(entry.line.name))


def plain(name: str) -> str:
    """Return a name in small letters without accents.

    >>> plain("R\u00e9nyiCL")
    'renyicl'
    """
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
