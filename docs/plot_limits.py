"""Draws how losses reduce to one another, from their declarations: `python docs/plot_limits.py`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contrastbench.losses.limits import Limit
from contrastbench.losses.registry import LOSSES, describe

FILE = Path(__file__).with_name("limits.svg")
WIDTH, ROW, BOX, STEP = 1290, 40, 124, 570  # of the picture, a limit, a loss, a generation
STYLE = """
text { font: 13px sans-serif; fill: #1b1b1b }
.small { font-size: 11.5px; fill: #555555 }
rect { fill: #ffffff; stroke: #1b1b1b }
path { fill: none; stroke: #2f6fab; stroke-width: 1.5 }
.factor { stroke-dasharray: 5 4 }
"""


@dataclass(frozen=True)
class Place:
    """The box of a loss, with one row for each of its limits."""

    generation: int
    top: float
    rows: int

    @property
    def left(self) -> float:
        """The box's left side."""
        return 10 + self.generation * STEP

    @property
    def middle(self) -> float:
        """The height at which losses that become it arrive."""
        return self.top + self.rows * ROW / 2


def limits(name: str) -> list[Limit]:
    """The other losses that a loss becomes."""
    return [limit for limit in describe(name).limits if limit.to != name]


def generation(name: str) -> int:
    """The number of limits between a loss and the last that it becomes."""
    return max((generation(limit.to) + 1 for limit in limits(name)), default=0)


def children(parent: str) -> list[str]:
    """Return the losses whose first limit is the parent."""
    return [name for name in LOSSES if limits(name) and limits(name)[0].to == parent]


def placed(name: str, top: float) -> Iterator[tuple[str, Place]]:
    """Place a loss beside the losses that become it, from a height on."""
    below = top
    for child in children(name):
        for one, place in placed(child, below):
            yield one, place
            below = max(below, place.top + place.rows * ROW)
    rows = max(1, len(limits(name)))
    middle = (top + max(below, top + rows * ROW)) / 2
    yield name, Place(generation(name), middle - rows * ROW / 2, rows)


def places() -> dict[str, Place]:
    """Place every loss that becomes another one, or that another one becomes."""
    found: dict[str, Place] = {}
    for root in LOSSES:
        if not limits(root) and children(root):
            bottom = max((place.top + place.rows * ROW for place in found.values()), default=34)
            found |= dict(placed(root, bottom + 8))
    return found


def edge(limit: Limit, row: int, child: Place, parent: Place) -> str:
    """Draw a limit: a line from the simpler loss, its setting above, its conditions below."""
    x, y = parent.left + BOX, child.top + (row + 0.5) * ROW
    bend, end = x + 60, child.left
    line = f"M{x:g} {parent.middle:g}C{bend:g} {parent.middle:g} {x:g} {y:g} {bend:g} {y:g}H{end:g}"
    kind = "" if limit.same_training else ' class="factor"'
    notes = [
        f"× {limit.factor}" * bool(limit.factor),
        "its gradient" * limit.gradient_only,
        "+ constant" * limit.constant,
        "at the start" * limit.at_start,
        limit.where,
    ]
    texts = [f'<path{kind} d="{line}"/>', text(bend + 8, y - 5, limit.setting or "always")]
    return "\n".join([*texts, text(bend + 8, y + 14, ", ".join(filter(None, notes)), "small")])


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Write words at a place."""
    shown = words.replace("-> inf", "→ ∞").replace("->", "→")
    return f'<text x="{x:g}" y="{y:g}"{f" class={kind!r}" if kind else ""}>{shown}</text>'


def box(name: str, place: Place) -> str:
    """Draw the box of a loss."""
    size = f'width="{BOX}" height="{place.rows * ROW - 12}" rx="5"'
    frame = f'<rect x="{place.left:g}" y="{place.top + 6:g}" {size}/>'
    return f'{frame}\n<text x="{place.left + 10:g}" y="{place.middle + 5:g}">{name}</text>'


def drawn() -> str:
    """Draw all limits as the text of an SVG file."""
    there = places()
    height = max(place.top + place.rows * ROW for place in there.values()) + 10
    edges = [
        edge(limit, row, place, there[limit.to])
        for name, place in there.items()
        for row, limit in enumerate(limits(name))
    ]
    boxes = [box(name, place) for name, place in there.items()]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">'
    legend = text(10, 22, "each loss with the one it becomes to its left; dashed: they train apart")
    return "\n".join([head, f"<style>{STYLE}</style>", legend, *edges, *boxes, "</svg>\n"])


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf-8")
