"""A table as text: Markdown for people, CSV for programs, LaTeX for papers."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.tables import catalogue, latex, selections
from contrastbench.benchmarks.tables.apart import SHORT
from contrastbench.benchmarks.tables.back import back_text
from contrastbench.benchmarks.tables.entries import (
    Entry,
    Value,
    best_by_column,
    entries,
    is_best,
)
from contrastbench.benchmarks.tables.load import load
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses.errors import UserError, unknown


def render(table: Table, results: Path, format_: str) -> str:
    """The table as text.

    Raises:
        UserError: unknown format.
    """
    formats = {"md": markdown, "csv": comma_separated, "latex": for_papers}
    if format_ not in formats:
        raise unknown("format", format_, formats)
    return formats[format_](table, list(entries(table, results)))


LEGEND = (
    "A method that is run here has the paper's value, ours as mean ± std over seeds, and the "
    "difference. The number of our seeds stands in parentheses, with that of the paper where ours "
    "are fewer. Italics mark values that are quoted only."
)


def legend(table: Table) -> str:
    """Return the legend of a table's places."""
    return LEGEND if table.quotes else "Mean ± std over seeds (number of seeds)."


def markdown(table: Table, lines: list[list[Entry]]) -> str:
    """A table for people."""
    header = ["Method", *(entry.column for entry in lines[0])]
    body = [
        [line[0].row.name, *(italic(entry, entry.text(table.decimals)) for entry in line)]
        for line in lines
    ]
    parts = [
        f"### {cell(table.name)}: {cell(table.title)}",
        "\n".join(as_table([header, *body])),
        legend(table),
        *filter(None, [back_of(lines, table.decimals)]),
        f"Selection: {table.selection_label}.",
        "\n".join(f"- {line}" for line in table.choices),
        *table.copies,
        f"Source: {table.source}.",
        table.notes,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def back_of(lines: Sequence[Sequence[Entry]], decimals: int) -> str:
    """Return which published values came back, in sentences; nothing where nothing tells."""
    found = [entry.back for line in lines for entry in line]
    return back_text([one for one in found if one], decimals)


def as_table(lines: list[list[str]]) -> Iterator[str]:
    """Markdown's form of a table; the first line is its header."""
    for line in (lines[0], ["---"] * len(lines[0]), *lines[1:]):
        yield f"| {' | '.join(map(cell, line))} |"


def cell(text: str) -> str:
    """A text that ends neither the cell nor the row, and is no HTML, link or picture.

    >>> cell("a|b"), cell("<b>[x](y)"), cell("p < 0.1")
    ('a&#124;b', '&lt;b>[x]&#40;y)', 'p < 0.1')
    """
    line = " ".join(text.splitlines()).replace("|", "&#124;").replace("](", "]&#40;")
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", line)


def italic(entry: Entry, text: str) -> str:
    """Quoted values stand in italics."""
    return text if entry.run or not entry.paper else f"*{text}*"


FIELDS = (
    "table selection method column loss quoted paper_mean paper_std paper_seeds "
    "ours_mean ours_std ours_seeds difference data failure "
    "ours_trimmed came_back came_back_trimmed"
)


def comma_separated(table: Table, lines: list[list[Entry]]) -> str:
    """A table for programs: one line for each place."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS.split())
    for entry in (entry for line in lines for entry in line):
        nothing = Value(float("nan"))
        paper, mine = entry.paper or nothing, entry.ours or nothing
        seeds = entry.seeds if entry.paper else None
        numbers = [paper.mean, paper.std, seeds, mine.mean, mine.std, mine.n, entry.difference]
        cells = [
            "" if v is None or v != v else v if isinstance(v, int) else f"{v:.4f}" for v in numbers
        ]
        quoted = "no" if entry.run else "yes"
        kind = table.selection.partition(":")[0]
        texts = (table.name, kind, entry.row.name, entry.column, entry.row.loss or "", quoted)
        writer.writerow(
            [
                *map(files.no_formula, texts),
                *cells,
                entry.data[:SHORT],
                entry.failure,
                *back_cells(entry),
            ]
        )
    return out.getvalue()


def back_cells(entry: Entry) -> list[str]:
    """Return our trimmed mean, and whether the published value came back by either rule."""
    ours, back = entry.ours and entry.ours.trimmed, entry.back
    verdicts = [back.by_mean, back.by_trimmed] if back else [None, None]
    words = {True: "yes", False: "no", None: ""}
    return [f"{ours.value:.4f}" if ours else "", *(words[verdict] for verdict in verdicts)]


def for_papers(table: Table, lines: list[list[Entry]]) -> str:
    """A table for LaTeX: the paper's values, ours and the differences below each other."""
    header = [latex.text(name) for name in ["Method", *(entry.column for entry in lines[0])]]
    best = best_by_column(lines, table.decimals)
    body = [cells for line in lines for cells in stacked(table, line, best)]
    parts = [f"{table.title}. {legend(table)} Selection: {table.selection_label}.", *table.copies]
    caption = " ".join([*parts, f"Source: {table.source}."])
    return latex.tabular(table.name, latex.text(caption), header, body)


def stacked(table: Table, line: list[Entry], best: Sequence[float | None]) -> Iterator[list[str]]:
    """The rows of a method in LaTeX; the best of ours in a column is bold."""
    rows = list(zip(*(entry.parts(table.decimals) for entry in line), strict=True))
    quoted = [entry.paper is not None and not entry.run for entry in line]
    bold = [is_best(*pair, table.decimals) for pair in zip(line, best, strict=True)]
    first = [
        latex.italic(value) if italics else latex.bold(value, mark and not table.quotes)
        for value, italics, mark in zip(rows[0], quoted, bold, strict=True)
    ]
    yield [latex.text(line[0].row.name), *first]
    if any(rows[1]):
        yield [r"\quad ours", *map(latex.bold, rows[1], bold)]
    if any(rows[2]):
        yield [r"\quad difference", *map(latex.text, rows[2])]


def write_all(results: Path) -> Iterator[Path]:
    """Every table, and those of YAML files in the results, as Markdown and CSV in there.

    Raises:
        UserError: a table's file is wrong, or the folder cannot be written.
    """
    for name in [*catalogue.names(), *map(str, sorted(results.glob("*.yaml")))]:
        table = selections.resolve(load(name), None, results)
        for format_ in ("md", "csv"):
            path = results / f"{table.name}.{format_}"
            write(path, render(table, results, format_))
            yield path


def write(path: Path, text: str) -> None:
    """Write the file, whole or not at all: where the disk is full, the old one stays."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}): make room or name another --results"
        ) from None
