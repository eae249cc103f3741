"""Render a table for people (Markdown), programs (CSV, JSON) and papers (LaTeX), without numpy."""

import json
from collections.abc import Iterable
from typing import Any

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.report import latex
from contrastbench.benchmarks.report.words import HASH_SHOWN, one_line, rendered, sentences
from contrastbench.benchmarks.tables.entries import Entry, backs, digest, entries
from contrastbench.benchmarks.tables.resolved import Resolved, ResolvedCell
from contrastbench.benchmarks.tables.table import Selection
from contrastbench.errors import UserError, check_known


def render_table(resolved: Resolved, format_: str, values: str | None = None) -> str:
    """Return the table as text; `values` are theirs, ours or both (None), in LaTeX."""
    formats = {"md": table_markdown, "csv": table_csv, "json": table_json, "latex": table_latex}
    check_known("format", format_, formats)
    if values is None:
        return formats[format_](resolved, list(entries(resolved)))
    check_known("value of --values", values, latex.VALUES)
    if format_ != "latex":
        raise UserError(f"--values {values} is of LaTeX: add --format latex")
    if values == latex.THEIRS and not resolved.table.quotes:
        raise UserError(f"--values {values}: {resolved.table.name} quotes no paper: leave it out")
    return table_latex(resolved, list(entries(resolved)), values)


def table_markdown(resolved: Resolved, lines: list[list[Entry]], **about: Any) -> str:
    """A table for people; `about` is what its page says besides, see the template."""
    header = ["Method", *(entry.column for entry in lines[0])]
    own = ((line, [e for e in line if not e.same_as]) for line in lines)
    begun = [line for line, some in own if any(e.ours or e.failure for e in some)]
    shown = begun if resolved.table.is_suite_of_sets and begun else lines  # its notes name the rest
    decimals = resolved.table.decimals
    body = [[line[0].line.name, *(entry.text(decimals) for entry in line)] for line in shown]
    values = {
        "r": resolved,
        "cells": [header, *body],
        "backs": backs(lines, resolved.table.name),
        "digest": digest(lines),
        "choices": choice_lines(resolved),
    }
    return rendered("table.md.j2", **{"page": None, **values, **about}) + "\n"


def choice_lines(resolved: Resolved) -> list[str]:
    """Return the chosen parameters of methods, or how often folds chose them, equal ones once."""
    if resolved.selection != Selection.VALIDATION:
        return []
    say = sentences(r=resolved)
    found: list[tuple[tuple[str, str], str]] = []  # columns and what is chosen there, of a row
    for line in resolved.lines:
        cells = sorted(line.cells.items(), key=lambda item: kind_of(item[1]))
        texts = ((one_line(str(say.choice(line.row, cell))), column) for column, cell in cells)
        columns = grouped((text, column) for text, column in texts if text)
        found += [((", ".join(where), text), line.name) for text, where in columns.items()]
    alike = grouped(found).items()
    return [f"{', '.join(rows)} on {where}: {text}" for (where, text), rows in alike]


def kind_of(cell: ResolvedCell) -> int:
    """Return the sort key of a cell: equal rows, folds, open places and choices, in this order."""
    if cell.same_as:
        return 0
    return 1 if cell.choice.nested else 2 if cell.choice.why else 3


def table_csv(resolved: Resolved, lines: list[list[Entry]]) -> str:
    return files.comma_separated(table_rows(resolved, lines), "{:.4f}")


def table_json(resolved: Resolved, lines: list[list[Entry]]) -> str:
    """The lines of the CSV as a list, with all digits."""
    return json.dumps(table_rows(resolved, lines), indent=2) + "\n"


def table_rows(resolved: Resolved, lines: Iterable[Iterable[Entry]]) -> list[dict[str, Any]]:
    return [place_values(resolved, entry) for line in lines for entry in line]


def place_values(resolved: Resolved, entry: Entry) -> dict[str, Any]:
    paper, mine = entry.paper, entry.ours
    return {
        "table": resolved.table.name,
        "selection": resolved.selection.value,
        "method": entry.line.name,
        "column": entry.column,
        "loss": entry.line.row.loss or "",
        "quoted": "yes" if entry.is_quoted else "no",
        "paper_mean": paper and paper.mean,
        "paper_std": paper and paper.std,
        "paper_seeds": paper and entry.seeds,
        "ours_mean": mine and mine.mean,
        "ours_std": mine and mine.std,
        "ours_seeds": mine and mine.n,
        "difference": entry.difference,
        "data": entry.data[:HASH_SHOWN],
        "failure": entry.failure,
        "came_back": entry.back,
    }


def table_latex(resolved: Resolved, lines: list[list[Entry]], values: str = latex.BOTH) -> str:
    """A table for LaTeX: the best of all rows bold, the second underlined, as papers have them."""
    about = {"label": latex.label(resolved.table.name), "ours": values != latex.THEIRS}
    rows = latex.latex_cells(lines, resolved.table.decimals, values)
    columns = [entry.column for entry in lines[0]]
    return rendered("table.tex.j2", r=resolved, columns=columns, rows=rows, **about) + "\n"


def audit_markdown(resolved: Resolved) -> str:
    from contrastbench.benchmarks.tables.audit import audit_lists, coverage, published_places

    every = list(published_places(resolved))
    values, lists = coverage(resolved).values, audit_lists(every)
    return rendered("audit.md.j2", r=resolved, every=every, values=values, lists=lists) + "\n"
