"""Plots of differences: every comparison is there, in the colour of its verdict."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from contrastbench.benchmarks.comparison.effects import OverSets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.report.differences import (
    MAX_FOREST_ROWS,
    color_of,
    differences_plot,
)
from contrastbench.benchmarks.report.plots import UNDECIDED_COLOUR, VERDICT_COLOURS, Drawing
from tools.told import verdicts

SVG = "{http://www.w3.org/2000/svg}"


def compared(row: str, column: str, difference: float | None, verdict: str) -> Comparison:
    return Comparison(
        row, column, "graph", seeds=(0, 1), difference=difference, half_width=0.8, verdict=verdict
    )


FEW = [
    compared("a $loss$", "MUTAG", 1.25, "better"),
    compared("another", "MUTAG", -0.5, "undecided"),
    compared("a $loss$", "DD", -2.0, "worse"),
    compared("another", "DD", None, "untested"),
]


def plot(places: list[Comparison]) -> Drawing | None:
    return differences_plot(verdicts(OverSets([]), places))


def texts(svg: str) -> list[str]:
    return [(text.text or "").strip() for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_forest_names_every_comparison_and_colours_its_verdict() -> None:
    drawing = plot(FEW)
    assert drawing is not None
    svg = drawing.svg()
    found = texts(svg)
    assert [found.count(name) for name in ("MUTAG", "DD", "a $loss$", "another")] == [1, 1, 2, 1]
    for colour in (VERDICT_COLOURS["better"], UNDECIDED_COLOUR):
        assert colour in svg
    assert 'aria-label="Differences from infonce: a $loss$ on MUTAG +1.2 ± 0.8 (better)' in svg


def test_a_heat_map_has_a_number_for_every_comparison_and_cuts_no_name() -> None:
    many = [
        compared(
            f"loss {i}", f"a rather long name {j}", (i - j) / 10, "better" if i > j else "undecided"
        )
        for i in range(8)
        for j in range(9)
    ]
    assert len(many) > MAX_FOREST_ROWS
    drawing = plot(many)
    assert drawing is not None
    svg = drawing.svg()
    assert sum(text.startswith("±0.8") for text in texts(svg)) == len(many)
    assert {f"loss {i}" for i in range(8)} <= set(texts(svg))


def test_a_heat_map_names_losses_that_are_the_baseline_s() -> None:
    many = [compared(f"loss {i}", f"set {j}", 0.5, "undecided") for i in range(8) for j in range(9)]
    copy = Comparison("loss 0", "set 9", "graph", why="the same as infonce by algebra")
    drawing = plot([*many, copy, FEW[-1]])
    assert drawing is not None
    found = texts(drawing.svg())
    assert found.count("same") == 1
    assert FEW[-1].row not in found, "a place without a number and without a reason is no cell"


def test_a_point_can_be_seen_beside_sixty() -> None:
    blueness = [b - r for r, _, b, _ in (color_of(d, 60) for d in (-60, -10, -1, 0, 1, 10, 60))]
    steps = [after - before for before, after in pairwise(blueness)]
    assert min(steps) > 0.05


@pytest.mark.parametrize("shown", [[], FEW[-1:]])
def test_nothing_to_compare_is_no_plot(shown: list[Comparison]) -> None:
    assert plot(shown) is None
