"""A comparison on a terminal, in lines that fit its width."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

from contrastbench.errors import printable

NARROWEST = 40
COLUMN_GAP = "  "
Drops = Sequence[Sequence[str]]
Cells = Sequence[Sequence[str]]  # the first line is the header


def width() -> int | None:
    """Return the width of the terminal; None where nothing asks for one, as in a file."""
    asked = os.environ.get("COLUMNS", "").isdecimal()
    if not (asked or sys.stdout.isatty()):
        return None
    return max(NARROWEST, shutil.get_terminal_size().columns)


def page(answer: str, heading: str, rows: Cells, drops: Drops, notes: list[str], wide: int) -> str:
    """Return the lines of a comparison: answer, table with all its rows, notes.

    The drops are those of `fitted`.
    """
    before = [*wrapped(answer, wide), "", *wrapped(heading, wide)]
    after = [line for note in notes for line in wrapped(note, wide) or [""]]
    return "\n".join([*before, *fitted(rows, wide, drops), *after, ""])


def wrapped(text: str, wide: int) -> list[str]:
    """Return a text in lines of the width."""
    return textwrap.wrap(printable(" ".join(text.splitlines())), wide, break_on_hyphens=False)


def fitted(rows: Cells, wide: int, drops: Drops) -> list[str]:
    """Return the lines of a table.

    Args:
        drops: headers of the columns that go together where the table does not fit, first ones
            first; a name in the first column is cut where that is not enough.
    """
    shown = one_line_cells(rows)
    for names in drops:
        if table_width(shown) > wide:
            kept = [i for i, name in enumerate(shown[0]) if name not in names]
            shown = [[row[i] for i in kept] for row in shown]
    first = max(NARROWEST // 5, wide - table_width(shown) + column_widths(shown)[0])
    return aligned([[truncated(row[0], first), *row[1:]] for row in shown], wide)


def fits(rows: Cells, wide: int) -> bool:
    """Return whether a table fits with all its columns."""
    return table_width(one_line_cells(rows)) <= wide


def one_line_cells(rows: Cells) -> list[list[str]]:
    """Return the cells as a terminal shows them, each on one line."""
    return [[printable(" ".join(cell.splitlines())) for cell in row] for row in rows]


def column_widths(rows: Cells) -> list[int]:
    """Return the width of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def table_width(rows: Cells) -> int:
    """Return the width of a table."""
    return sum(column_widths(rows)) + len(COLUMN_GAP) * (len(rows[0]) - 1)


def aligned(rows: Cells, wide: int) -> list[str]:
    """Return the lines of a table, no line wider than the terminal."""
    sizes = column_widths(rows)
    lines = (COLUMN_GAP.join(map(str.ljust, row, sizes)).rstrip() for row in rows)
    return [truncated(line, wide) for line in lines]


def truncated(text: str, wide: int) -> str:
    """Return a text that is cut where it is wider.

    >>> truncated("infonce", 4)
    'inf…'
    """
    return text if len(text) <= wide else f"{text[: wide - 1]}…"
