"""Draws how losses reduce to one another, from their declarations: `python docs/plot_limits.py`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contrastbench.losses.limits import Limit
from contrastbench.losses.registry import OURS, describe

FILE = Path(__file__).with_name("limits.svg")
WIDTH, ROW, INDENT, TEXT = 720, 24, 26, 215  # of the picture, a loss, a generation; x of settings
STYLE = """
text { font: 14px sans-serif; fill: #1b1b1b }
.loss { font-weight: bold }
.small { font-size: 13px; fill: #555555 }
path { fill: none; stroke: #2f6fab; stroke-width: 1.5 }
.factor { stroke-dasharray: 5 4 }
"""


@dataclass(frozen=True)
class Row:
    """A line of the tree: a loss, and the limit by which it is the loss of the row above it."""

    name: str
    depth: int
    limit: Limit | None = None


def limits(name: str) -> list[Limit]:
    """Return the limits of a loss that lead to other losses."""
    return [limit for limit in describe(name).limits if limit.to != name]


def tree(name: str, depth: int = 0, limit: Limit | None = None) -> Iterator[Row]:
    """Yield a loss and below it those that become it; a loss with two limits has two rows."""
    yield Row(name, depth, limit)
    for child in OURS:
        for one in limits(child):
            if one.to == name:
                yield from tree(child, depth + 1, one)


def rows() -> list[Row]:
    """Return the trees of all losses that become no other one, those that stand alone left out."""
    trees = [list(tree(root)) for root in OURS if not limits(root)]
    return [row for found in trees if len(found) > 1 for row in found]


def words(limit: Limit) -> str:
    """Return the setting of a limit, and its conditions in small letters."""
    notes = [
        f"× {limit.factor}" * bool(limit.factor),
        "its gradient" * limit.gradient_only,
        "+ constant" * limit.constant,
        "at the start" * limit.at_start,
        limit.where,
    ]
    small = ", ".join(filter(None, notes))
    return shown(limit.setting or "always") + f' <tspan class="small" dx="8">{shown(small)}</tspan>'


def shown(text: str) -> str:
    """Return words with arrows and the sign of infinity."""
    return text.replace("-> inf", "→ ∞").replace("->", "→")


def drawn_row(row: Row, y: float, parent: float) -> str:
    """Draw a loss at a height, joined to the loss that it becomes, which stands at another one."""
    x = 10 + row.depth * INDENT
    loss = f'<text class="loss" x="{x}" y="{y + 5:g}">{row.name}</text>'
    if row.limit is None:
        return loss
    kind = "" if row.limit.same_training else ' class="factor"'
    line = f'<path{kind} d="M{x - 18} {parent + 9:g}V{y:g}H{x - 4}"/>'
    return f'{line}\n{loss}\n<text x="{TEXT}" y="{y + 5:g}">{words(row.limit)}</text>'


def drawn() -> str:
    """Draw all limits as the text of an SVG file."""
    lines, heights = [], dict[int, float]()
    y = 16.0
    for row in rows():
        y += ROW if row.depth else ROW * 1.5
        heights[row.depth] = y
        lines.append(drawn_row(row, y, heights.get(row.depth - 1, y)))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 20:g}" role="img">'
    legend = "a loss is the one that it hangs from at these settings; dashed: they train apart"
    title = f'<text x="10" y="22">{legend}</text>'
    return "\n".join([head, f"<style>{STYLE}</style>", title, *lines, "</svg>\n"])


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf-8")
