"""Effects on data sets, and verdicts over them: against scipy and a loop, and by simulation."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isclose, isinf, sqrt
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.comparison import Verdict
from contrastbench.benchmarks.comparison.effects import (
    POINTS,
    SHARES,
    Counted,
    Effect,
    effect_curve,
    effect_of,
    gains_of,
)
from contrastbench.benchmarks.comparison.over_sets import (
    Judged,
    Part,
    by_domain,
    family,
    judge,
    judge_control,
    mean_over,
    seen,
)
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.comparison.statistics import holm
from counts import times

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
    assert mine.by_set[SET] == pytest.approx(25)


def test_effects_are_points_where_nothing_says_what_training_gains() -> None:
    assert effect_of("new", [line("new", SET, 0.5)], {}).by_set[SET] == pytest.approx(0.5)
    assert (Counted().scale, Counted({"G0": 4.0}).scale) == (POINTS, SHARES)


def test_a_set_that_does_not_count_has_no_effect() -> None:
    assert effect_of("new", [line("new", SET, 1.0)], {"other": 4.0}).by_set == {}


def test_each_column_of_a_set_has_its_own_gain_and_the_set_their_mean() -> None:
    probes = [replace(line("new", SET, one), column=name) for name, one in (("a", 2.0), ("b", 0.0))]
    mine = effect_of("new", probes, {"a": 20.0, "b": 2.0})
    assert mine.by_set == {SET: pytest.approx(5)}


def test_a_training_that_diverges_loses_the_whole_gain() -> None:
    failed = replace(line("new", SET, None, verdict="failed"), lost=(0, 1))
    mine = effect_of("new", [failed], {"G0": 5.0})
    assert (mine.by_set, mine.failed) == ({SET: -100.0}, {SET})
    some = replace(line("new", SET, 3.0), failure="diverged (4 of 8)", lost=(4, 5, 6, 7))
    half = effect_of("new", [some], {"G0": 10.0})
    assert half.by_set[SET] == pytest.approx((30 - 100) / 2)
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
    assert (mine.same, mine.by_set) == (True, {SET: 0.0})
    other = line("new", ("graph", "G1"), 1.0)
    assert not effect_of("new", [same, other], {"G0": 5.0, "G1": 5.0}).same


def test_a_curve_is_against_the_best_of_all_on_the_sets_that_count() -> None:
    new = {("new", "G0"): {1: 50.0, 4: 60.0}, ("new", "small"): {1: 90.0}}
    base = {("base", "G0"): {1: 40.0, 4: 55.0, 8: 58.0}, ("base", "small"): {1: 10.0}}
    mine = [line("new", SET, 1.0), line("new", ("graph", "small"), 1.0)]
    curve = effect_curve(new | base, "base", mine, {"G0": 4.0})
    assert curve == {1: pytest.approx(-200), 4: pytest.approx(50)}


GAINS = Counted(gains={"A": 10.0})
SIZES = {"image": 5, "tabular": 6, "graph": 4, "sentence": 6}


def effect(row: str, groups: Mapping[str, list[float]], **about: object) -> Effect:
    values = {
        (domain, f"{domain}-{i}"): value
        for domain, some in groups.items()
        for i, value in enumerate(some)
    }
    return Effect(row, values, **about)  # type: ignore[arg-type]


def drawn(seed: int, mean: float = 0.0, sizes: Mapping[str, int] = SIZES) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    return {name: (mean + 3 * rng.normal(size=n)).tolist() for name, n in sizes.items()}


def test_one_domain_is_the_t_test_of_scipy() -> None:
    values = [1.0, 2.5, -0.5, 4.0, 3.0]
    (part,) = family([mean_over([values])], margin=5.0)
    theirs = stats.ttest_1samp(values, 0.0)
    assert isclose(part.p, theirs.pvalue, rel_tol=1e-9)
    interval = theirs.confidence_interval()
    assert isclose(part.mean - part.half, interval.low, rel_tol=1e-9)
    low = stats.ttest_1samp(values, -5.0, alternative="greater").pvalue
    high = stats.ttest_1samp(values, 5.0, alternative="less").pvalue
    assert isclose(part.p_equal(5.0), max(low, high), rel_tol=1e-9)


def test_domains_count_alike_and_share_one_spread() -> None:
    """By loops over the docstring's formulas."""
    groups = [*drawn(0).values()]
    part = mean_over(groups)
    squares, freedom, fourth = 0.0, 0, 0.0
    for values in groups:
        mean = sum(values) / len(values)
        own = sum((value - mean) ** 2 for value in values)
        squares, freedom = squares + own, freedom + len(values) - 1
        fourth += own**2 / (len(values) - 1)
    scale = sum(1 / (len(groups) ** 2 * len(values)) for values in groups)
    assert isclose(part.mean, fmean(map(fmean, groups)), rel_tol=1e-12)
    assert isclose(part.error, sqrt(squares / freedom * scale), rel_tol=1e-9)
    assert isclose(part.freedom, squares**2 / fourth, rel_tol=1e-9)
    assert part.freedom < freedom


def test_domains_of_one_set_have_the_spread_of_the_others_or_none() -> None:
    assert mean_over([[1.0, 3.0, 2.0, 4.0, 0.0], [9.0]]).freedom == 4
    assert mean_over([[1.0], [2.0]]).freedom == 0
    assert isinf(mean_over([[1.0]]).half)
    assert mean_over([[0.0, 0.0], [3.0]]).freedom == 0, "no spread says nothing of a third set"
    assert mean_over([[2.0] * 3, [2.0] * 3]).p == 0


def test_effects_that_differ_by_rounding_alone_are_equal() -> None:
    values = by_domain({("a", str(i)): 0.1 + 1e-12 * i for i in range(6)})
    assert mean_over(values.values()).error == 0


def test_few_sets_are_not_tested() -> None:
    few = mean_over([[50.0, 51.0, 52.0]])
    enough = mean_over([[50.0, 51.0, 52.0, 50.5]])
    words = [part.verdict for part in family([few, enough], 5.0)]
    assert words == [Verdict.UNTESTED, Verdict.BETTER]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([9.0, 8.0, 10.0, 9.5, 8.5], Verdict.BETTER),
        ([-9.0, -8.0, -10.0, -9.5, -8.5], Verdict.WORSE),
        ([1.0, -1.0, 0.5, -0.5, 0.2], Verdict.EQUAL),
        ([20.0, -20.0, 5.0, -5.0, 3.0], Verdict.UNDECIDED),
        ([2.0, 2.1, 1.9, 2.0, 2.05], Verdict.BETTER),  # and within the margin, which is said apart
    ],
)
def test_each_verdict(values: list[float], word: Verdict) -> None:
    (part,) = family([mean_over([values])], 5.0)
    assert part.verdict == word
    assert (part.holm_equal <= 0.05) == (max(map(abs, values)) < 5)


def test_losses_are_corrected_together_and_those_to_come_count() -> None:
    parts = [mean_over([drawn(k, 4.0, {"a": 8})["a"]]) for k in range(4)]
    found = family(parts, 5.0, to_come=3)
    assert [part.holm for part in found] == pytest.approx(
        holm([p.p for p in parts] + [1.0] * 3)[:4]
    )
    alone = family(parts[:1], 5.0)
    assert alone[0].holm < found[0].holm


def test_losses_that_join_change_no_other() -> None:
    """Neither verdicts nor what these hang on, by a further choice of all of them too."""

    def judged(rows: list[Effect]) -> list[Judged]:
        return judge(rows, GAINS, {"also": {row.row: row.by_set for row in rows}})

    listed = [effect(f"l{k}", drawn(k, 2.0)) for k in range(3)]
    joined = [effect(f"mine{k}", drawn(9 + k), joined=True) for k in range(30)]
    after = judged([*listed, *joined])
    assert all(row.effect.joined for row in after[:30])
    assert after[30:] == judged(listed)


def test_domains_are_a_family_of_their_own() -> None:
    rows = [effect(f"l{k}", drawn(k, 9.0)) for k in range(3)]
    judged = judge(rows, GAINS)
    places = [(row, domain) for row in judged for domain in row.by_domain]
    alone = [mean_over([by_domain(row.effect.by_set)[domain]]) for row, domain in places]
    able = [part for part in alone if part.freedom >= 3]
    expected = holm([part.p for part in able])
    shown = [row.by_domain[domain] for row, domain in places]
    assert [part.holm for part in shown if part.freedom >= 3] == pytest.approx(expected)
    assert {domain for _, domain in places} == {*SIZES}


def test_the_same_runs_are_not_tested() -> None:
    zero = {name: [0.0] * n for name, n in SIZES.items()}
    (row,) = judge([effect("copy", zero, same=True)], GAINS)
    assert row.over.verdict == Verdict.UNTESTED


@pytest.mark.parametrize(
    ("about", "mean", "word"),
    [
        ({"failed": frozenset({("graph", "gone")})}, 9.0, Verdict.UNDECIDED),
        ({"failed": frozenset({("graph", "gone")})}, -9.0, Verdict.WORSE),
        ({"failed": frozenset({("graph", "graph-0")})}, 9.0, Verdict.BETTER),
        ({"base_failed": frozenset({("graph", "graph-0")})}, -9.0, Verdict.UNDECIDED),
        ({"base_failed": frozenset({("graph", "graph-0")})}, 9.0, Verdict.BETTER),
    ],
)
def test_failures_forbid_verdicts(about: dict[str, object], mean: float, word: Verdict) -> None:
    (row,) = judge([effect("a", drawn(1, mean), **about)], GAINS)
    assert row.over.verdict == word


def test_a_verdict_names_the_set_that_it_hangs_on() -> None:
    """One far set carries the mean, of effects that are otherwise small."""
    steady = {"image": [6.0, 5.0, 7.0, 6.5, 5.5], "graph": [5.0, 6.0, 7.0, 5.5, 6.5]}
    (row,) = judge([effect("steady", steady)], GAINS)
    assert (row.over.verdict, row.hangs_on) == (Verdict.BETTER, {})
    assert row.tried == 10 + 2 + 1, "each set, each domain, the median"
    carried = {"image": [1.0, 1.2, 0.8, 1.1, 0.9], "graph": [1.0, 1.3, 0.7, 1.0, -3.0]}
    (row,) = judge([effect("carried", carried)], GAINS)
    assert row.over.verdict == Verdict.EQUAL
    weak = {"image": [3.0, 1.0, 2.0, 1.5, 2.5], "graph": [2.0, 1.0, 12.0, 1.5, 2.5]}
    (row,) = judge([effect("weak", weak)], GAINS)
    assert row.over.verdict == Verdict.BETTER
    assert row.hangs_on["image-0"] == Verdict.UNDECIDED
    assert "graph-2" not in row.hangs_on, "without the far set the spread is smaller"


def test_a_verdict_hangs_on_a_further_choice_where_it_turns() -> None:
    groups = {"image": [6.0, 5.0, 7.0, 6.5, 5.5], "graph": [5.0, 6.0, 7.0, 5.5, 6.5]}
    row = effect("a", groups)
    turned = {name: -value for name, value in row.by_set.items()}
    further = {"kept": {"a": row.by_set}, "turned": {"a": turned}, "of another": {"b": turned}}
    (judged,) = judge([row], GAINS, further)
    assert judged.hangs_on == {"turned": Verdict.WORSE}
    assert judged.tried == 10 + 2 + 1 + 2


def test_undecided_hangs_on_the_domain_without_which_it_is_decided() -> None:
    torn = {
        "image": [9.0, 10.0, 11.0, 10.5, 9.5],
        "graph": [8.0, 9.0, 10.0, 9.5],
        "tabular": [-30.0, -9.0, 12.0, 5.0],
    }
    (row,) = judge([effect("torn", torn)], GAINS)
    assert (row.over.verdict, row.hangs_on) == (Verdict.UNDECIDED, {"tabular": Verdict.BETTER})
    assert row.tried == 9 + 3 + 1, "three tables are too few for a test"
    failed = frozenset({("graph", "gone")})
    (row,) = judge([effect("torn", torn, failed=failed)], GAINS)
    assert row.hangs_on == {}, "a loss that failed on a set is better by no choice"
    (row,) = judge([effect("few", {"graph": [1.0, -1.0, 30.0, -2.0]})], GAINS)
    assert (row.over.verdict, row.hangs_on) == (Verdict.UNDECIDED, {})
    assert row.tried == 1, "the median; three sets tell nothing"


def test_the_median_has_a_wider_error() -> None:
    groups = [[0.0, 1.0, 2.0, 3.0, 40.0]]
    assert mean_over(groups, median).mean == 2.0
    assert mean_over(groups).mean == 9.2


@pytest.mark.parametrize(
    ("must", "groups", "came_out"),
    [
        ("worse", {"a": [-50.0, -60.0, -55.0, -52.0, -58.0]}, True),
        ("worse", {"a": [-50.0, 60.0, -55.0, 52.0, -58.0]}, False),
        ("better", {"a": [50.0, 60.0, 55.0, 52.0, 58.0]}, True),
        ("below", {"a": [-50.0, 20.0, -5.0]}, True),
        ("below", {"a": [50.0, -20.0, -5.0]}, False),
        ("below", {"a": [0.4, 0.6, 0.5]}, False),
        ("equal", {"a": [1.0, -1.0, 0.5, -0.5, 0.2]}, True),
        ("equal", {"a": [9.0, 8.0, 10.0, 9.5, 8.5]}, False),
        ("worse", {"a": [-50.0], "b": [-3.0]}, True),  # few sets: the sign on each
        ("worse", {"a": [-50.0], "b": [3.0]}, False),
    ],
)
def test_a_control_comes_out_as_it_must(
    must: str, groups: dict[str, list[float]], came_out: bool
) -> None:
    mine = effect("c", groups)
    assert judge_control(mine, mine, must, GAINS).came_out == came_out


def test_a_control_is_judged_on_all_sets_not_on_those_where_training_gains() -> None:
    counted = effect("c", {"a": [-50.0]})
    everywhere = effect("c", {"a": [-5.0, 3.0, 4.0, 3.5, 2.0]})
    judged = judge_control(counted, everywhere, "worse", GAINS)
    assert (judged.came_out, judged.over.mean) == (False, -50.0)


def test_what_would_have_been_seen_is_seen_four_times_in_five() -> None:
    part = mean_over([np.random.default_rng(3).normal(size=6).tolist() for _ in range(4)])
    least = seen(part, 0.05)
    limit = stats.t.ppf(0.975, int(part.freedom)) * part.error
    power = stats.nct.sf(limit / part.error, int(part.freedom), least / part.error)
    assert isclose(power, 0.8, abs_tol=0.002)
    assert seen(Part(1.0), 0.05) == inf


# % of the gain: by domain, the deviation of an effect by search and seeds, as measured
NOISE = {"image": 3.7, "tabular": 8.6, "graph": 6.1, "sentence": 2.1}


def null_study(draws: int, between: float, losses: int = 10) -> tuple[float, float]:
    """Return the familywise error and the coverage of intervals, without any mean effect."""
    rng, wrong, inside = np.random.default_rng(0), 0, list[bool]()
    for _ in range(draws):
        rows = [
            effect(
                f"l{k}",
                {
                    name: (np.hypot(NOISE[name], between) * rng.normal(size=n)).tolist()
                    for name, n in SIZES.items()
                },
            )
            for k in range(losses)
        ]
        judged = judge(rows, GAINS)
        wrong += any(row.over.verdict in (Verdict.BETTER, Verdict.WORSE) for row in judged)
        inside += [abs(row.over.mean) <= row.over.half for row in judged]
    return wrong / draws, fmean(inside)


@pytest.mark.parametrize("between", [0.0, 3.0, 9.0])
def test_without_effects_verdicts_are_wrong_one_time_in_twenty(between: float) -> None:
    draws = times(600)
    wrong, covered = null_study(draws, between)
    error = sqrt(0.05 * 0.95 / draws)
    assert wrong <= 0.05 + 2.5 * error
    assert covered >= 0.94 - 2.5 * sqrt(0.06 * 0.94 / (10 * draws))
