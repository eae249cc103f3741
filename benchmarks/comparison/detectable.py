"""Report which differences the runs of a table could detect on one data set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median

from contrastbench.benchmarks.comparison.compare import Comparison


@dataclass(frozen=True)
class Sight:
    """The smallest difference that a column's runs can detect: the median over the methods."""

    column: str
    seeds: int
    detectable: float  # the smallest true difference that the t-test finds four times in five
    seeds_a_point: float  # to find a difference of one percent point; infinite: no number is enough


def sights(comparisons: Iterable[Comparison]) -> list[Sight]:
    """Return one for each column in which some loss was tested; controls do not count."""
    by_column: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.detectable is not None and not one.control:
            by_column.setdefault(one.column, []).append(one)
    return [sight(column, tested) for column, tested in by_column.items()]


def sight(column: str, tested: Sequence[Comparison]) -> Sight:
    """Summarise how small a difference the comparisons in one column can detect."""
    seeds = max(len(one.seeds) for one in tested)
    smallest = median(one.detectable for one in tested if one.detectable is not None)
    points = (inf if one.seeds_a_point is None else one.seeds_a_point for one in tested)
    return Sight(column, seeds, smallest, median(points))


def sight_text(seen: Sequence[Sight]) -> str:
    """Say which differences a table could detect; empty if nothing was tested.

    >>> sight_text([Sight("A", 5, 1.0, 7), Sight("B", 5, 3.04, inf)])
    'These runs would have shown a true difference of 1.0 points (A) to 3.0 (B) on one data set four times in five. A claim of one point takes 7 seeds (A); no number is enough on B.'
    """  # noqa: E501
    if not seen:
        return ""
    ordered = sorted(seen, key=lambda one: one.detectable)
    low, high = ordered[0], ordered[-1]
    spread = f"{low.detectable:.1f} points ({low.column})"
    if len(seen) > 1:
        spread += f" to {high.detectable:.1f} ({high.column})"
    return (
        f"These runs would have shown a true difference of {spread} on one data set "
        f"four times in five. {a_point_text(seen)}"
    )


def a_point_text(seen: Sequence[Sight]) -> str:
    """Say how many seeds a claim of one percent point takes."""
    never = [one.column for one in seen if not isfinite(one.seeds_a_point)]
    some = sorted(
        (one for one in seen if isfinite(one.seeds_a_point)), key=lambda one: one.seeds_a_point
    )
    parts = []
    if some:
        ends = [f"{one.seeds_a_point:.0f} seeds ({one.column})" for one in (some[0], some[-1])]
        parts.append(f"A claim of one point takes {' to '.join(dict.fromkeys(ends))}")
    if never:
        what = "no number is enough" if some else "No number of seeds is enough for one point"
        parts.append(f"{what} on {', '.join(never)}")
    return "; ".join(parts) + "."
