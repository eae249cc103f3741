"""Methods over data sets: the sample is the sets, and what runs could have seen is said."""

from dataclasses import replace
from math import inf, sqrt
from statistics import fmean, stdev

import pytest
from scipy import stats

from contrastbench.benchmarks.comparison.answer import answer
from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.markdown import over_lines
from contrastbench.benchmarks.comparison.over_sets import (
    SETS,
    OverSets,
    Sight,
    over_sets,
    sight_text,
    sights,
)
from contrastbench.benchmarks.comparison.statistics import PValue

SEEN = [1.2, 0.8, 1.5, 0.9, 1.1, 1.6]
NOISE = [1.0, -1.0, 0.5, -0.5, 2.0, -1.9]


def differences(row: str, values: list[float]) -> list[Comparison]:
    return [
        Comparison(row, f"C{i}", "graph", f"D{i}", (0, 1), difference=value, verdict="tie")
        for i, value in enumerate(values)
    ]


BOTH = [*differences("noise", NOISE), *differences("better", SEEN)]


def test_each_set_is_one_difference_of_an_ordinary_t_test() -> None:
    better, noise = over_sets(BOTH)
    assert (better.row, noise.row) == ("better", "noise"), "the largest mean first"
    assert better.test.p == pytest.approx(stats.ttest_1samp(SEEN, 0).pvalue)
    assert better.mean == pytest.approx(fmean(SEEN))
    assert better.won == 6
    assert noise.won == 3
    assert better.half_width == pytest.approx(stats.t.isf(0.025, 5) * stdev(SEEN) / sqrt(6))
    assert better.holm == pytest.approx(2 * (better.test.p or 0)), "of two tests"
    assert (better.verdict, noise.verdict) == ("win", "tie")


def test_signs_decide_who_is_worse() -> None:
    (found,) = over_sets(differences("worse", [-d for d in SEEN]))
    assert found.verdict == "loss"
    assert answer("infonce", [], [found]).startswith(
        "Over 6 data sets nothing is better than infonce, the best mean is worse (-1.2 ± 0.3); "
        "worse: worse (-1.2 ± 0.3) (1 test, Holm)."
    )


def test_the_answer_names_who_is_better_over_sets_then_set_by_set() -> None:
    text = answer("infonce", BOTH, over_sets(BOTH))
    assert text.startswith("Over 6 data sets better than infonce: better (+1.2 ± 0.3) (2 tests, ")
    assert text.endswith("Nothing is tested against infonce on 6 data sets.")


def test_a_row_that_joins_is_said_over_sets_too() -> None:
    over = over_sets(BOTH)
    assert answer("infonce", BOTH, over, ["better"]).startswith(
        "better on 6 of 6 data sets: better over them (+1.2 ± 0.3). Over 6 data sets "
    )
    width = stats.t.isf(0.025, 5) * stdev(NOISE) / sqrt(6)
    assert answer("infonce", BOTH, over, ["noise"]).startswith(
        f"noise on 6 of 6 data sets: over them (+0.0 ± {width:.1f}), "
        "no difference from infonce holds. "
    )


def test_two_columns_of_one_set_are_one_set() -> None:
    twice = [
        *differences("better", SEEN),
        *(replace(one, column="k" + one.column) for one in differences("better", SEEN)),
    ]
    assert over_sets(twice) == over_sets(differences("better", SEEN))
    assert "on 12 columns" in answer("infonce", twice)


def test_few_sets_are_no_sample() -> None:
    assert over_sets(differences("better", SEEN[: SETS - 1])) == []
    assert len(over_sets(differences("better", SEEN[:SETS]))) == 1


def test_a_set_on_which_a_method_failed_is_counted_apart() -> None:
    lost = Comparison("better", "C9", "graph", "D9", verdict="failed", failure="diverged (2 of 2)")
    (found,) = over_sets([*differences("better", SEEN), lost])
    assert found.failed == 1
    assert len(found.differences) == 6


def test_five_signed_ranks_decide_nothing() -> None:
    (found,) = over_sets(differences("better", SEEN[:5]), test="wilcoxon")
    assert found.test.p == 0.0625
    assert found.verdict == "untested"
    (found,) = over_sets(differences("better", SEEN), test="wilcoxon")
    assert found.test.p == pytest.approx(2.0**-5)
    assert found.verdict == "win"


def test_what_a_column_can_see_is_the_median_over_its_methods() -> None:
    powers = [(1.0, 7), (2.0, 20), (4.0, None)]
    tested = [
        Comparison(f"m{i}", "A", "graph", "MUTAG", (0, 1, 2), detectable=d, seeds_a_point=n)
        for i, (d, n) in enumerate(powers)
    ]
    untested = Comparison("other", "A", "graph", "MUTAG", (0,))
    assert sights([*tested, untested]) == [Sight("A", 3, 2.0, 20)]
    assert sights([untested]) == []
    assert sight_text([], []) == ""
    assert sights(tested[2:]) == [Sight("A", 3, 4.0, inf)]
    assert "No number of seeds is enough for one point on A." in sight_text(sights(tested[2:]), [])


def test_the_level_of_an_interval_is_in_its_header() -> None:
    over = [OverSets("new", (1.0, 2.0), 0, PValue(0.1), 0.5, None)]
    header = next(line for line in over_lines("base", over, 0.1) if "Mean difference" in line)
    assert "| 90 % |" in header
