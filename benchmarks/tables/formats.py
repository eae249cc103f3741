"""A table as text: Markdown for people, CSV for programs, LaTeX for papers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.tables import choices, latex, origins
from contrastbench.benchmarks.tables.entries import (
    Entry,
    best_by_column,
    entries,
    is_best,
)
from contrastbench.benchmarks.tables.replication import back_text
from contrastbench.benchmarks.tables.resolved import HASH_SHOWN, Resolved
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import UserError, unknown


def render_table(resolved: Resolved, format_: str) -> str:
    """The table as text.

    Raises:
        UserError: unknown format.
    """
    formats = {"md": table_markdown, "csv": table_csv, "latex": table_latex}
    if format_ not in formats:
        raise unknown("format", format_, formats)
    return formats[format_](resolved, list(entries(resolved)))


TABLE_LEGEND = (
    "A method that is run here has the paper's value, ours as mean ± std over seeds, and the "
    "difference. The number of our seeds stands in parentheses, with that of the paper where ours "
    "are fewer. Italics mark values that are quoted only."
)


def table_legend(table: Table) -> str:
    """Return the legend of a table's places."""
    return TABLE_LEGEND if table.quotes else "Mean ± std over seeds (number of seeds)."


def table_markdown(
    resolved: Resolved, lines: list[list[Entry]], opening: Sequence[str] = ()
) -> str:
    """A table for people; what opens it stands below its heading."""
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


def table_latex(resolved: Resolved, lines: list[list[Entry]]) -> str:
    """A table for LaTeX: the paper's values, ours and the differences below each other."""
    table = resolved.table
    header = [latex.latex_text(name) for name in ["Method", *(entry.column for entry in lines[0])]]
    best = best_by_column(lines, table.decimals)
    body = [cells for line in lines for cells in stacked(table, line, best)]
    parts = [f"{table.title}. {table_legend(table)} Selection: {resolved.label}.", *resolved.copies]
    caption = " ".join([*parts, f"Source: {table.source}."])
    return latex.tabular(table.name, latex.latex_text(caption), header, body)


def stacked(table: Table, line: list[Entry], best: Sequence[float | None]) -> Iterator[list[str]]:
    """The rows of a method in LaTeX; the best of ours in a column is bold."""
    rows = list(zip(*(entry.parts(table.decimals) for entry in line), strict=True))
    quoted = [entry.paper is not None and not entry.run for entry in line]
    bold = [is_best(*pair, table.decimals) for pair in zip(line, best, strict=True)]
    first = [
        latex.italic(value) if italics else latex.bold(value, mark and not table.quotes)
        for value, italics, mark in zip(rows[0], quoted, bold, strict=True)
    ]
    yield [latex.latex_text(line[0].line.name), *first]
    if any(rows[1]):
        yield [r"\quad ours", *map(latex.bold, rows[1], bold)]
    if any(rows[2]):
        yield [r"\quad difference", *map(latex.latex_text, rows[2])]


def write_file(path: Path, text: str) -> None:
    """Write the file, whole or not at all: where the disk is full, the old one stays."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}): make room or name another --results"
        ) from None
