"""Effects on data sets: what they are a share of, and what fails or is the same runs."""

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest

from contrastbench.benchmarks.comparison.budget import effect_curve
from contrastbench.benchmarks.comparison.effects import (
    POINTS,
    SHARES,
    Counted,
    Measured,
    effect_of,
    gains_of,
)
from contrastbench.benchmarks.comparison.pairs import Comparison

SET = ("graph", "G0")
PATTERN = tuple(sign * sqrt(3) / 2 for sign in (-1, 1, -1, 1))  # mean 0, standard deviation 1


def line(
    row: str, where: tuple[str, str], difference: float | None, std: float = 0.1, **more: Any
) -> Comparison:
    found = Comparison(row, where[1], *where, difference=difference, std=std, **more)
    if difference is None:
        return found
    differences = tuple(difference + std * one for one in PATTERN)
    return replace(found, seeds=tuple(range(4)), differences=differences)


def test_sets_on_which_training_gains_little_or_noise_do_not_count() -> None:
    small = [line("none", ("graph", "small"), -0.9), line("none", ("graph", "noisy"), -5.0, 5.1)]
    good = [line("none", ("graph", "good"), -5.0, 4.9), line("none", ("graph", "just"), -1.0)]
    once = replace(line("none", ("graph", "once"), -1.0), std=None, seeds=(0,))  # of no spread
    gains, left_out = gains_of([*small, *good, once])
    assert (list(gains), left_out) == (["good", "just", "once"], ["small", "noisy"])


def test_the_gain_is_over_the_best_of_what_is_untrained() -> None:
    gains, _ = gains_of([line("none", SET, -10.0), line("raw", SET, -4.0)])
    assert gains == {"G0": 4.0}
    mine = effect_of("new", [line("new", SET, 1.0)], gains)
    assert mine.by_set[SET].mean == pytest.approx(25)
    assert mine.by_set[SET].error == pytest.approx(2.5 / sqrt(4))


def test_effects_are_points_where_nothing_says_what_training_gains() -> None:
    assert effect_of("new", [line("new", SET, 0.5)], {}).by_set[SET].mean == pytest.approx(0.5)
    assert (Counted().scale, Counted({"G0": 4.0}).scale) == (POINTS, SHARES)


def test_a_set_that_does_not_count_has_no_effect() -> None:
    assert effect_of("new", [line("new", SET, 1.0)], {"other": 4.0}).by_set == {}


def test_each_column_of_a_set_has_its_own_gain_and_the_set_their_mean() -> None:
    probes = [replace(line("new", SET, one), column=name) for name, one in (("a", 2.0), ("b", 0.0))]
    mine = effect_of("new", probes, {"a": 20.0, "b": 2.0})
    assert mine.by_set == {SET: Measured(pytest.approx(5), pytest.approx((0.25 + 2.5) / 2))}


def test_a_training_that_diverges_loses_the_whole_gain() -> None:
    failed = replace(line("new", SET, None, verdict="failed"), lost=(0, 1))
    mine = effect_of("new", [failed], {"G0": 5.0})
    assert (mine.by_set, mine.failed) == ({SET: Measured(-100.0, 0.0)}, {SET})
    some = replace(line("new", SET, 3.0), failure="diverged (4 of 8)", lost=(4, 5, 6, 7))
    half = effect_of("new", [some], {"G0": 10.0})
    assert half.by_set[SET].mean == pytest.approx((30 - 100) / 2)
    assert half.failed == {SET}


def test_without_a_gain_a_failure_has_no_number_and_neither_has_too_little_memory() -> None:
    some = replace(line("new", SET, 3.0), failure="diverged (4 of 8)", lost=(4, 5, 6, 7))
    mine = effect_of("new", [some], {})
    assert (mine.by_set, mine.failed) == ({}, {SET})
    oom = replace(line("new", SET, None, verdict="failed"), failure="oom (2 of 2)")
    mine = effect_of("new", [oom], {"G0": 5.0})
    assert (mine.by_set, mine.failed) == ({}, {SET})


def test_the_same_runs_have_no_effect_wherever_they_ran() -> None:
    same = line("new", SET, None, same=True)
    mine = effect_of("new", [same], {"G0": 5.0})
    assert (mine.same, mine.by_set) == (True, {SET: Measured(0.0)})
    other = line("new", ("graph", "G1"), 1.0)
    assert not effect_of("new", [same, other], {"G0": 5.0, "G1": 5.0}).same


def test_a_curve_is_against_the_best_of_all_on_the_sets_that_count() -> None:
    new = {("new", "G0"): {1: 50.0, 4: 60.0}, ("new", "small"): {1: 90.0}}
    base = {("base", "G0"): {1: 40.0, 4: 55.0, 8: 58.0}, ("base", "small"): {1: 10.0}}
    mine = [line("new", SET, 1.0), line("new", ("graph", "small"), 1.0)]
    curve = effect_curve(new | base, "base", mine, {"G0": 4.0})
    assert curve == {1: pytest.approx(-200), 4: pytest.approx(50)}
