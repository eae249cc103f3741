"""A table as text: Markdown for people, CSV for programs, LaTeX for papers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.tables import choices, latex, origins
from contrastbench.benchmarks.tables.entries import Entry, Value, entries
from contrastbench.benchmarks.tables.replication import back_text
from contrastbench.benchmarks.tables.resolved import HASH_SHOWN, Resolved
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import UserError, unknown

VALUES = THEIRS, OURS, BOTH = "theirs", "ours", "both"


def render_table(resolved: Resolved, format_: str, values: str | None = None) -> str:
    """The table as text.

    Args:
        resolved: the table with its records.
        format_: md, csv or latex.
        values: theirs, ours or both in LaTeX; None: both.

    Raises:
        UserError: unknown format or values, or values of another format.
    """
    formats = {"md": table_markdown, "csv": table_csv, "latex": table_latex}
    if format_ not in formats:
        raise unknown("format", format_, formats)
    if values is None:
        return formats[format_](resolved, list(entries(resolved)))
    if values not in VALUES:
        raise unknown("value of --values", values, VALUES)
    if format_ != "latex":
        raise UserError(f"--values {values} is of LaTeX: add --format latex")
    return table_latex(resolved, list(entries(resolved)), values)


TABLE_LEGEND = (
    "A method that is run here has the paper's value, ours as mean ± std over seeds, and the "
    "difference. The number of our seeds stands in parentheses, with that of the paper where ours "
    "are fewer. Italics mark values that are quoted only."
)


def table_legend(table: Table) -> str:
    """Return the legend of a table's places."""
    return TABLE_LEGEND if table.quotes else "Mean ± std over seeds (number of seeds)."


def table_markdown(
    resolved: Resolved,
    lines: list[list[Entry]],
    opening: Sequence[str] = (),
    closing: Sequence[str] = (),
) -> str:
    """A table for people; what opens it stands below its heading, what closes it below values."""
    table = resolved.table
    header = ["Method", *(entry.column for entry in lines[0])]
    body = [
        [
            line[0].line.name,
            *(quoted_in_italics(entry, entry.text(table.decimals)) for entry in line),
        ]
        for line in lines
    ]
    parts = [
        f"### {escaped_cell(table.name)}: {escaped_cell(table.title)}",
        *opening,
        "\n".join(markdown_table([header, *body])),
        *closing,
        table_legend(table),
        back_of(lines, table.decimals),
        escaped_cell(origins.origin_line(resolved)),
        escaped_cell(origins.edited_line(resolved)),
        f"Selection: {resolved.label}.",
        "\n".join(f"- {line}" for line in choices.choice_lines(resolved)),
        *resolved.copies,
        f"Source: {table.source}.",
        table.notes,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def back_of(lines: Sequence[Sequence[Entry]], decimals: int) -> str:
    """Return which published values came back, in sentences; nothing where nothing tells."""
    found = [entry.back for line in lines for entry in line]
    return back_text([one for one in found if one], decimals)


def markdown_table(lines: list[list[str]]) -> Iterator[str]:
    """Markdown's form of a table; the first line is its header."""
    for line in (lines[0], ["---"] * len(lines[0]), *lines[1:]):
        yield f"| {' | '.join(map(escaped_cell, line))} |"


def escaped_cell(text: str) -> str:
    """A text that ends neither the cell nor the row, and is no HTML, link or picture.

    >>> escaped_cell("a|b"), escaped_cell("<b>[x](y)"), escaped_cell("p < 0.1")
    ('a&#124;b', '&lt;b>[x]&#40;y)', 'p < 0.1')
    """
    line = " ".join(text.splitlines()).replace("|", "&#124;").replace("](", "]&#40;")
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", line)


def quoted_in_italics(entry: Entry, text: str) -> str:
    """Quoted values stand in italics."""
    return text if entry.run or not entry.paper else f"*{text}*"


def table_csv(resolved: Resolved, lines: list[list[Entry]]) -> str:
    """A table for programs: one line for each place."""
    return files.comma_separated(table_rows(resolved, lines), "{:.4f}")


def table_rows(resolved: Resolved, lines: Iterable[Iterable[Entry]]) -> list[dict[str, Any]]:
    """Return the values of each place by name, for CSV and data frames."""
    return [place_values(resolved, entry) for line in lines for entry in line]


def place_values(resolved: Resolved, entry: Entry) -> dict[str, Any]:
    """Return the values of one place; None where there is none."""
    paper, mine, back = entry.paper, entry.ours, entry.back
    words = {True: "yes", False: "no"}
    return {
        "table": resolved.table.name,
        "selection": resolved.selection.value,
        "method": entry.line.name,
        "column": entry.column,
        "loss": entry.line.row.loss or "",
        "quoted": words[not entry.run and entry.paper is not None],
        "paper_mean": paper and paper.mean,
        "paper_std": paper and paper.std,
        "paper_seeds": paper and entry.seeds,
        "ours_mean": mine and mine.mean,
        "ours_std": mine and mine.std,
        "ours_seeds": mine and mine.n,
        "difference": entry.difference,
        "data": entry.data[:HASH_SHOWN],
        "failure": entry.failure,
        "ours_trimmed": mine.trimmed.value if mine and mine.trimmed else None,
        "came_back": words[back.by_mean] if back else "",
        "came_back_trimmed": words[back.by_trimmed] if back else "",
    }


def table_latex(resolved: Resolved, lines: list[list[Entry]], values: str = BOTH) -> str:
    """A table for LaTeX: the best of all rows bold, the second underlined, as papers have them."""
    table = resolved.table
    rows = [row for line in lines for row in latex_rows(table, line, values)]
    columns = zip(*(row.means for row in rows), strict=True)
    marks = [latex.first_two(one for one in means if one is not None) for means in columns]
    body = [[row.name, *map(latex.marked, row.texts, row.means, marks)] for row in rows]
    header = [latex.latex_text(name) for name in ["Method", *(entry.column for entry in lines[0])]]
    ours = "" if values == THEIRS else "Ours: mean ± standard deviation (seeds). "
    caption = f"{table.title}. {ours}Bold: the best of a column; underlined: the second."
    notes = [f"Source: {table.source}.", f"Selection: {resolved.label}.", *resolved.copies]
    return latex.tabular(table.name, latex.latex_text(caption), header, body, notes)


class LatexRow(NamedTuple):
    """A row of LaTeX: the text of each place, and its mean as it is shown if it is a contestant."""

    name: str
    texts: Sequence[str]
    means: Sequence[float | None]


def latex_rows(table: Table, line: list[Entry], values: str) -> Iterator[LatexRow]:
    """The rows of a method: printed values, and below them ours with the differences."""
    parts = [entry.parts(table.decimals) for entry in line]
    name, printed = latex.latex_text(line[0].line.name), any(entry.paper for entry in line)
    theirs = [shown_mean(entry, entry.paper, table.decimals) for entry in line]
    own = [shown_mean(e, e.ours if e.run else e.paper, table.decimals) for e in line]
    if printed and values != OURS:
        yield LatexRow(name, [one[0] for one in parts], theirs)
    elif not printed and values == THEIRS and table.quotes:
        return
    else:
        texts = [one[1] or one[0] for one in parts]
        yield LatexRow(name, texts, own)
    if values == BOTH and printed and any(entry.run for entry in line):
        yield LatexRow(r"\quad ours", [one[1] for one in parts], own)
        if any(one[2] for one in parts):
            yield LatexRow(r"\quad difference", [one[2] for one in parts], [None] * len(parts))


def shown_mean(entry: Entry, value: Value | None, decimals: int) -> float | None:
    """Return a mean as it is shown; controls are no contestants."""
    return round(value.mean, decimals) if value and not entry.line.control else None


def write_file(path: Path, text: str) -> None:
    """Write the file, whole or not at all: where the disk is full, the old one stays."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}): make room or name another --results"
        ) from None
