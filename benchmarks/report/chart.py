"""Place the lines of small charts, which templates draw as SVG without matplotlib."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

Points = Sequence[tuple[float, float]]
MIN_MARGINS, MAX_MARGINS = 2, 10  # margins that an axis of effects has room for on both sides
LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT = 56, 10, 10, 28, 340, 180


@dataclass(frozen=True)
class Chart:
    """Lines over one axis, each with a name."""

    title: str
    unit: str  # of the axis below
    lines: Mapping[str, Points]
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    foot: int = HEIGHT - BOTTOM
    width: int = WIDTH
    height: int = HEIGHT

    @cached_property
    def spans(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the least and the largest value of both axes."""
        points = [(x, y) for line in self.lines.values() for x, y in line if isfinite(y)]
        across, up = zip(*points, strict=True) if points else ((0.0,), (0.0,))
        return (min(across), max(across)), (min(up), max(up))

    def x(self, value: float) -> float:
        """Return the place of a value on the axis below."""
        (low, high), _ = self.spans
        return self.left + (value - low) / ((high - low) or 1) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the place of a value on the axis at the left."""
        _, (low, high) = self.spans
        return self.foot - (value - low) / ((high - low) or 1) * (self.foot - self.top)

    @property
    def drawn(self) -> Iterator[tuple[str, str]]:
        """Yield each line's name, and its points as SVG writes them."""
        for name, line in self.lines.items():
            places = ((self.x(x), self.y(y)) for x, y in line if isfinite(y))
            yield name, " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    @property
    def words(self) -> str:
        """Describe the chart for screen readers."""
        ends = ", ".join(f"{name} ends at {line[-1][1]:.4g}" for name, line in self.lines.items())
        return f"{self.title} by {self.unit}: {ends}"


@dataclass(frozen=True)
class Forest:
    """The axis that the effects of a leaderboard share; what lies outside is cut at its ends."""

    low: float
    high: float
    margin: float  # effects within it are equal
    width: int = 160
    edge: int = 8  # beside the axis, so that whole markers are seen

    def x(self, value: float) -> float:
        """Return the place of a value.

        >>> Forest(-100, 100, 10).x(0), Forest(-100, 100, 10).x(-500)
        (80.0, 8.0)
        """
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(self.edge + share * (self.width - 2 * self.edge), 1)

    def outside(self, value: float) -> bool:
        """Return whether a value is cut."""
        return not self.low <= value <= self.high


def axis(ends: Sequence[float], margin: float) -> Forest:
    """Return the axis for these ends of intervals, which few far ones do not stretch.

    >>> axis([-12.0, 300.0], 10.0)
    Forest(low=-20.0, high=100.0, margin=10.0, width=160, edge=8)
    """
    least, most = MIN_MARGINS * margin, MAX_MARGINS * margin
    return Forest(max(min([*ends, -least]), -most), min(max([*ends, least]), most), margin)
