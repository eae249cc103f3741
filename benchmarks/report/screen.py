"""A comparison on a terminal: rich lays out its lines in the width."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from contrastbench.errors import printable

Cells = Sequence[Sequence[str]]  # the first line is the header


def page(answer: str, heading: str, tables: Sequence[Cells], hint: str, wide: int) -> str:
    """Return the lines of a comparison, whose tables have fewer and fewer columns.

    The first table that fits is shown. Where none does, the last has cells of several lines.
    """
    console, free = Console(width=wide, color_system=None), Console(width=10 * wide)
    made = [laid_out(rows) for rows in tables]
    shown = next((one for one in made if free.measure(one).maximum <= wide), made[-1])
    with console.capture() as lines:
        console.print(text(answer), "", text(heading), shown, "", text(hint), sep="\n")
    return "\n".join(line.rstrip() for line in lines.get().splitlines())


def laid_out(rows: Cells) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(text(name))
    for row in rows[1:]:
        table.add_row(*map(text, row))
    return table


def text(plain: str) -> Text:
    """Return a text on one line, which rich takes letter by letter."""
    return Text(printable(" ".join(plain.splitlines())), overflow="fold")
