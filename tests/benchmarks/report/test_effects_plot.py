"""The plot of effects: every row is there, in the colour of its verdict, controls below."""

from dataclasses import replace
from xml.etree import ElementTree

from contrastbench.benchmarks.comparison.effects import SAME_LOSS, Effect, OverSets, Part
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS, Measured
from contrastbench.benchmarks.report.effects import effects_plot
from contrastbench.benchmarks.report.plots import UNDECIDED_COLOUR, VERDICT_COLOURS
from tools.told import verdicts

SVG = "{http://www.w3.org/2000/svg}"
SETS = [("graph", "A"), ("graph", "B"), ("tabular", "C")]


def effect(row: str, estimate: float, verdict: str, must: str = "") -> Effect:
    by_set = {name: Measured(estimate, {0: estimate - 1, 1: estimate + 1}) for name in SETS}
    interval = (estimate - 3, estimate + 3)
    part = Part(by_set, estimate, interval, 0.1, 0.1, verdict=verdict)
    parts = dict.fromkeys(("graph", "tabular"), part)
    return Effect(row, by_set, 0, estimate, interval, parts, verdict=verdict, must=must)


OVER = OverSets(
    [
        effect("new $loss$", 30, "better"),
        effect("close", 1, "equal"),
        effect("copy", 0, SAME_LOSS),
        effect("wide", -40, "undecided"),
        effect("raw input", -240, "worse", "worse"),
    ],
    dict.fromkeys(SETS, 10.0),
    margin=10.0,
    test=SET_TESTS["seeds"],
)


def texts(over: OverSets) -> list[str]:
    drawing = effects_plot(verdicts(over))
    assert drawing is not None
    root = ElementTree.fromstring(drawing.svg())
    return [(text.text or "").strip() for text in root.iter(f"{SVG}text")]


def test_every_row_has_its_name_its_verdict_and_its_colour() -> None:
    drawing = effects_plot(verdicts(OVER))
    assert drawing is not None
    found = texts(OVER)
    for name in ("new $loss$", "close", "wide", "raw input", "better", "equal", "worse"):
        assert found.count(name) == 1
    for colour in (*VERDICT_COLOURS.values(), UNDECIDED_COLOUR):
        assert colour in drawing.svg()
    assert "close +1 (-2 to +4), equal; wide -40 (-43 to -37), undecided" in drawing.words


def test_what_is_small_is_said_and_each_domain_has_a_panel() -> None:
    small = replace(OVER.effects[0], holm_equal=0.01)
    found = texts(replace(OVER, effects=[small, *OVER.effects[1:]]))
    assert "better, small" in found
    assert found.count("graph") == found.count("tabular") == 1
    in_one = texts(replace(OVER, test=SET_TESTS["t"], effects=[effect("new", 30, "better")]))
    assert "graph" not in in_one, "where sets are drawn all of them are one panel"


def test_a_copy_of_the_baseline_is_left_out() -> None:
    assert "copy" not in texts(OVER)


def test_controls_stand_under_a_heading() -> None:
    found = texts(OVER)
    assert found.index("wide") < found.index("raw input")
    assert "controls" in found
    assert "controls" not in texts(replace(OVER, effects=OVER.effects[:-1]))


def test_ticks_reach_over_controls_and_begin_at_the_margin() -> None:
    found = texts(OVER)
    assert {"-200", "-10", "0", "+10", "+20"} <= set(found)
    assert not {"-5", "+5", "-500", "+500"} & set(found)


def test_without_a_verdict_there_is_no_plot() -> None:
    assert effects_plot(verdicts(OverSets([]))) is None
    assert effects_plot(verdicts(replace(OVER, effects=OVER.effects[-1:]))) is None
