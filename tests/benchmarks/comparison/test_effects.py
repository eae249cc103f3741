"""Effects over data sets: what they are a share of, verdicts, and how often these are wrong."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contrastbench.benchmarks.comparison.effects import effects_by_set, gains_of
from contrastbench.benchmarks.comparison.over_sets import Effect, OverSets, least_seen, over_sets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS, Measured, SetTest
from counts import times
from told import controls_text, few_text, over_sets_text

CONTROL = {"none": "worse"}
BOTH = SET_TESTS["wilcoxon"], SET_TESTS["t"]
SETS = [*[("graph", f"G{k}") for k in range(6)], *[("image", f"I{k}") for k in range(4)]]


PATTERN = tuple(sign * 3**0.5 / 2 for sign in (-1, 1, -1, 1))  # mean 0, standard deviation 1


def line(
    row: str, where: tuple[str, str], difference: float | None, std: float = 0.1, **more: Any
) -> Comparison:
    found = Comparison(row, where[1], *where, difference=difference, std=std, **more)
    if difference is None:
        return found
    differences = tuple(difference + std * one for one in PATTERN)
    return replace(found, seeds=tuple(range(4)), differences=differences)


def lines(row: str, differences: list[float]) -> list[Comparison]:
    return [line(row, where, d) for where, d in zip(SETS, differences, strict=True)]


def untrained(gain: float = 10.0) -> list[Comparison]:
    return lines("none", [-gain] * len(SETS))


def of(found: OverSets, row: str) -> Effect:
    return next(one for one in found.effects if one.row == row)


def test_an_effect_is_a_share_of_the_gain_over_the_best_of_what_is_untrained() -> None:
    raw = lines("raw", [-4.0, *[-20.0] * 9])
    found = over_sets([*untrained(), *raw, *lines("new", [1.0] * 10)], ["none", "raw"])
    assert [found.gains[name] for _, name in SETS[:2]] == [4.0, 10.0]
    assert of(found, "new").by_set[SETS[0]].mean == pytest.approx(25)
    assert of(found, "new").by_set[SETS[1]].mean == pytest.approx(10)


def test_sets_on_which_training_gains_little_or_noise_do_not_count() -> None:
    small = [line("none", ("graph", "small"), -0.9), line("none", ("graph", "noisy"), -5.0, 5.1)]
    good = [line("none", ("graph", "good"), -5.0, 4.9), line("none", ("graph", "just"), -1.0)]
    once = replace(line("none", ("graph", "once"), -1.0), std=None, seeds=(0,))  # of no spread
    gains, left_out = gains_of([*small, *good, once])
    assert (list(gains), left_out) == (["good", "just", "once"], ["small", "noisy"])


def probes(row: str, knn: float, linear: float) -> list[Comparison]:
    """The comparisons of a row with two probes of one set."""
    found = [line(row, SETS[0], one) for one in (knn, linear)]
    return [replace(one, column=name) for one, name in zip(found, ("kNN", "linear"), strict=True)]


def test_each_probe_of_a_set_has_its_own_gain() -> None:
    found = over_sets([*probes("none", -20.0, -2.0), *probes("new", 2.0, 0.0)], ["none"], CONTROL)
    assert found.gains == {"kNN": 20.0, "linear": 2.0}
    assert of(found, "new").estimate == pytest.approx(5)
    found = over_sets([*probes("none", -20.0, -0.2), *probes("new", 2.0, 1.0)], ["none"], CONTROL)
    assert (found.gains, found.left_out) == ({"kNN": 20.0}, ["linear"])
    assert of(found, "new").estimate == pytest.approx(10)


def test_without_an_untrained_row_effects_are_points() -> None:
    found = over_sets(lines("new", [0.5] * 10), [])
    assert (found.unit, found.margin) == ("points", 1.0)
    assert of(found, "new").estimate == pytest.approx(0.5)


def test_what_is_seen_is_the_median_of_the_losses_that_have_run_on_most_sets() -> None:
    whole = of(over_sets([*untrained(), *lines("new", [1.0] * 10)], ["none"], CONTROL), "new")
    half = replace(whole, by_set=dict([*whole.by_set.items()][:5]), detectable=9.0)
    rows = [half, *(replace(whole, detectable=one) for one in (0.0, 1.0, 2.0, 6.0))]
    assert (least_seen(rows), least_seen(rows[:2]), least_seen(rows[1:2])) == (2.0, None, 0.0)


def test_a_loss_as_good_as_no_training_loses_no_more_than_that_gains() -> None:
    rows = [*untrained(), *lines("new", [-10.0] * 10), *lines("bad", [-10.5] * 10)]
    found = over_sets(rows, ["none"], CONTROL)
    below = {row: of(found, row).untrained_in for row in ("new", "bad")}
    assert below == {"new": [], "bad": ["graph", "image"]}


def test_a_failure_loses_the_whole_gain_and_the_same_runs_lose_nothing() -> None:
    failed = replace(line("new", SETS[0], None, verdict="failed"), lost=(0, 1))
    same = line("new", SETS[1], None, why="the same runs", same=True)
    gains = {"G0": 5.0, "G1": 5.0}
    by_set, lost = effects_by_set([failed, same], gains)
    assert (by_set, lost) == ({SETS[0]: Measured(-100.0), SETS[1]: Measured(0.0)}, {SETS[0]})
    assert effects_by_set([failed], {}) == ({}, {SETS[0]})
    once = effects_by_set([replace(failed, lost=(3,))], gains)[0]
    assert once == {SETS[0]: Measured(-100.0, {3: -100.0})}, "one seed shows nothing"
    oom = effects_by_set([replace(failed, lost=(), failure="oom (2 of 2)")], gains)
    assert oom == ({}, {SETS[0]}), "too little memory says nothing of a loss"


def test_two_columns_of_a_set_are_one_set() -> None:
    two = [line("new", SETS[0], 1.0), line("new", SETS[0], 3.0)]
    ((mean, by_seed),) = effects_by_set(two, {})[0].values()
    assert mean == 2.0
    assert list(by_seed.values()) == pytest.approx([2 + one / 10 for one in PATTERN])


def test_a_seed_that_failed_loses_the_gain_with_it_and_without_a_gain_there_is_no_number() -> None:
    some = replace(line("new", SETS[0], 3.0), failure="diverged (4 of 8)", lost=(4, 5, 6, 7))
    by_set, failed = effects_by_set([some], {"G0": 10.0})
    assert failed == {SETS[0]}
    assert by_set[SETS[0]].mean == pytest.approx((30 - 100) / 2)
    assert [by_set[SETS[0]].by_seed[seed] for seed in some.lost] == [-100.0] * 4
    assert effects_by_set([some], {}) == ({}, {SETS[0]})


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([2.0 + k / 10 for k in range(10)], "better"),
        ([-2.0 - k / 10 for k in range(10)], "worse"),
        ([0.1, -0.1, 0.2, -0.2, 0.3, -0.3, 0.1, -0.1, 0.2, -0.2], "equal"),
        ([3.0, -3.1, 2.0, -2.1, 1.0, -1.1, 3.2, -3.3, 2.2, -2.3], "undecided"),
    ],
)
def test_four_verdicts(differences: list[float], verdict: str) -> None:
    found = over_sets([*untrained(), *lines("new", differences)], ["none"], CONTROL)
    assert of(found, "new").verdict == verdict


def test_controls_have_no_part_in_corrections() -> None:
    rows = [*untrained(), *lines("a", [2.0 + k / 10 for k in range(10)])]
    alone = of(over_sets(rows, ["none"], CONTROL), "a")
    assert alone.holm == alone.p
    beside = of(over_sets([*rows, *lines("b", [1.0] * 10)], ["none"], CONTROL), "a")
    assert beside.holm == pytest.approx(2 * alone.p)


def simulated(
    rng: np.random.Generator, shift: float, test: SetTest = BOTH[0], rows: int = 8
) -> OverSets:
    """Losses with an effect on each of ten sets, seen through the noise of seeds."""
    found = untrained()
    for k in range(rows):
        true = rng.normal(shift, 0.5, size=len(SETS))  # points
        found += lines(f"loss {k}", [float(t + rng.normal(0, 0.5)) for t in true])
    return over_sets(found, ["none"], CONTROL, test=test)


@pytest.mark.parametrize("test", BOTH, ids=lambda test: test.name)
def test_without_an_effect_one_family_in_twenty_has_a_verdict_at_most(test: SetTest) -> None:
    rng, families = np.random.default_rng(0), times(400)
    wrong = [
        any(one.verdict in ("better", "worse") for one in simulated(rng, 0, test).effects[:-1])
        for _ in range(families)
    ]
    assert np.mean(wrong) <= 0.05 + 3 * (0.05 / families) ** 0.5


def test_the_answer_says_controls_verdicts_and_what_could_be_seen() -> None:
    rows = [
        *untrained(),
        *lines("good", [2.0 + k / 10 for k in range(10)]),
        *lines("same", [0.1, -0.1, 0.2, -0.2, 0.3, -0.3, 0.1, -0.1, 0.2, -0.2]),
    ]
    text = over_sets_text(over_sets(rows, ["none"], CONTROL))
    assert text.startswith(
        "Over 10 data sets (signed-rank test, Holm) better than infonce: good (+25 %); equal "
        "within 10 % of the training gain in the mean over domains: same (0 %). An effect of "
    )


def test_the_t_test_judges_over_sets_where_it_is_asked_for() -> None:
    rows = [*untrained(), *lines("good", [2.0 + k / 10 for k in range(10)])]
    found = over_sets(rows, ["none"], CONTROL, test=SET_TESTS["t"])
    by_set = of(found, "good").by_set
    assert of(found, "good").p == SET_TESTS["t"].p_value(by_set) < 1e-6
    assert over_sets_text(found).startswith("Over 10 data sets (t-test, Holm) better")
    five = [*untrained()[:5], *lines("new", [3.0, 3.1, 3.2, 3.3, 3.0] * 2)[:5]]
    verdicts = [of(over_sets(five, ["none"], CONTROL, test=test), "new").verdict for test in BOTH]
    assert verdicts == ["too few sets", "better"], "five sets are too few for signed ranks"


def test_a_control_that_is_not_worse_makes_the_comparison_unreadable() -> None:
    blind = lines("none", [-3.0, 3.1, -2.0, 2.1, -1.0, 1.1, -3.2, 3.3, -2.2, 2.3])
    found = over_sets([*blind, *lines("new", [1.0] * 10)], ["none"], CONTROL)
    assert controls_text(found, blind) == (
        "This comparison cannot be read: 'none' is not shown to be worse than infonce, as a "
        "control must be."
    )
    seeing = over_sets([*untrained(), *lines("new", [1.0] * 10)], ["none"], CONTROL)
    assert controls_text(seeing, []) == "Controls: 1 worse than infonce, as must be."


def test_each_control_has_to_come_out_in_its_own_way() -> None:
    musts = {"none": "worse", "half": "below", "by class": "better", "network": "better"}
    rows = [*untrained(), *lines("half", [-1.0] * 9 + [8.0]), *lines("by class", [3.0] * 10)]
    rows += lines("network", [3.0, -3.1, 2.0, -2.1, 1.0, -1.1, 3.2, -3.3, 2.2, -2.3])
    found = over_sets(rows, ["none"], musts)
    assert [one.came_out for one in found.effects] == [True, True, True, False]
    assert controls_text(found, rows) == (
        "This comparison cannot be read: 'network' is not shown to be better than infonce, as "
        "a control must be."
    )
    del musts["network"]
    found = over_sets(rows[:-10], ["none"], musts)
    assert controls_text(found, rows) == (
        "Controls: 1 worse than infonce, 1 below, 1 better, as must be."
    )


def test_a_control_on_few_sets_does_not_hide_the_others() -> None:
    musts = {"none": "worse", "raw": "worse"}
    found = over_sets([*untrained(), *lines("raw", [-20.0] * 10)[:3]], ["none"], musts)
    assert of(found, "raw").verdict == "too few sets"
    assert controls_text(found, []) == "Controls: 1 worse than infonce, as must be."


def test_with_few_sets_each_set_is_judged_by_its_own_controls() -> None:
    few = [line("none", SETS[0], -10.0), line("none", SETS[1], 0.5)]
    found = over_sets([*few, *lines("new", [1.0] * 10)[:2]], ["none"], CONTROL)
    assert controls_text(found, few) == (
        "G1 cannot be read: 'none' is no worse than infonce there."
    )
    few = [line("none", name, 0.5) for name in SETS[:2]]
    found = over_sets([*few, *lines("new", [1.0] * 10)[:2]], ["none"], CONTROL)
    assert controls_text(found, few).startswith("G0, G1 cannot be read: ")
    few = [line("none", SETS[0], -10.0)]
    found = over_sets([few[0], *lines("new", [1.0] * 10)[:1]], ["none"], CONTROL)
    assert controls_text(found, few[:1]) == ("Controls: 'none' is below infonce on each set.")


def test_a_control_is_judged_on_all_sets_not_on_those_where_training_gains() -> None:
    half = lines("none", [-10.0] * 5 + [10.0] * 5)
    found = over_sets([*half, *lines("new", [1.0] * 10)], ["none"], CONTROL)
    assert len(found.gains) == 5
    assert of(found, "none").verdict == "undecided"


def test_the_sign_of_a_control_is_that_of_all_sets() -> None:
    """One counted set may point the other way."""
    rows = [*untrained()[:1], *lines("none", [-0.5] * 10)[1:], *lines("new", [1.0] * 10)]
    odd = [line("permuted", SETS[0], -3.0), *lines("permuted", [5.0] * 10)[1:]]
    half = [line("half", SETS[0], 3.0), *lines("half", [-5.0] * 10)[1:]]
    musts = {**CONTROL, "permuted": "worse", "half": "below"}
    found = over_sets([*rows, *odd, *half], ["none"], musts, test=SET_TESTS["seeds"])
    assert list(found.gains) == ["G0"]
    assert (of(found, "permuted").estimate, of(found, "permuted").verdict) == (-30.0, "better")
    assert not of(found, "permuted").came_out
    assert of(found, "half").estimate > 0
    assert of(found, "half").came_out


def test_a_copy_of_another_loss_is_tested_once() -> None:
    rows = [*untrained(), *lines("a", [2.0 + k / 10 for k in range(10)])]
    copy = [replace(one, row="copy", same_as="a") for one in rows[10:]]
    found = over_sets([*rows, *copy], ["none"], CONTROL)
    assert of(found, "a").holm == of(found, "a").p
    assert (of(found, "a").also, of(found, "a").name) == (["copy"], "a, copy")
    runs = frozenset({(0, "key")})
    alike = [replace(one, row=row, runs=runs) for row in ("b", "c") for one in rows[10:]]
    assert of(over_sets([*untrained(), *alike], ["none"], CONTROL), "b").also == ["c"]
    joined = [replace(one, row="mine", joined=True) for one in copy]
    mine = of(over_sets([*rows, *joined], ["none"], CONTROL), "mine")
    assert mine.verdict == "better", "a loss that joined has a verdict of its own"


def test_a_copy_of_the_baseline_has_no_part_in_corrections() -> None:
    rows = [*untrained(), *lines("a", [2.0 + k / 10 for k in range(10)])]
    copy = [line("copy", where, None, same=True) for where in SETS]
    found = over_sets([*rows, *copy], ["none"], CONTROL)
    assert of(found, "a").holm == of(found, "a").p
    assert of(found, "copy").verdict == "the same loss"
    text = over_sets_text(found)
    assert text.count("copy") == text.count("Not counted, as the same runs: copy.") == 1


def test_losses_to_come_are_corrected_for_so_that_no_verdict_is_lost() -> None:
    rows = [*untrained(), *lines("a", [2.0 + k / 10 for k in range(10)])]
    found = over_sets(rows, ["none"], CONTROL, expected=["a", "b", "c"])
    assert (found.to_come, of(found, "a").holm) == (2, 3 * of(found, "a").p)
    assert "(signed-rank test, Holm for all 3 losses)" in over_sets_text(found)
    rows += [*lines("b", [0.3, -0.3] * 5), *lines("c", [0.2, -0.2] * 5)]
    whole = over_sets(rows, ["none"], CONTROL, expected=["a", "b", "c"])
    assert of(whole, "a") == of(found, "a")
    assert "(signed-rank test, Holm)" in over_sets_text(whole)


def test_a_difference_within_the_margin_is_said_to_be_small() -> None:
    rows = [*untrained(), *lines("a", [0.2 + k / 100 for k in range(10)])]
    found = over_sets(rows, ["none"], CONTROL)
    assert (of(found, "a").verdict, of(found, "a").is_small) == ("better", True)
    assert "better than infonce: a (+2 %, within 10 %)." in over_sets_text(found)


def test_a_copy_that_is_to_run_where_it_is_a_loss_of_its_own_is_none() -> None:
    rows = [*untrained(), *lines("a", [2.0 + k / 10 for k in range(10)])]
    copy = [line("copy", where, None, same=True, waiting=True) for where in SETS[:5]]
    found = over_sets([*rows, *copy], ["none"], CONTROL, expected=["a", "copy"])
    assert (of(found, "copy").verdict, of(found, "copy").estimate) == ("the same loss so far", 0.0)
    assert found.to_come == 1, "its test is still to come"
    assert of(found, "a").holm == pytest.approx(2 * of(found, "a").p)


def test_domains_that_a_loss_has_yet_to_run_in_count_as_tests() -> None:
    new = lines("new", [*[2.0 + k / 10 for k in range(6)], *[-2.0 - k / 10 for k in range(4)]])
    part, seeds = lines("part", [0.3] * 10), SET_TESTS["seeds"]
    for those in (part, [one for one in part if one.domain == "graph"]):
        found = over_sets([*untrained(), *new, *those], ["none"], CONTROL, test=seeds)
        assert of(found, "new").decided == {"graph": "better", "image": "worse"}
        assert of(found, "new").verdict == "mixed"
        four = pytest.approx(4 * of(found, "new").p)
        assert of(found, "new").holm == four, "two losses on two domains are four tests"


def test_equal_is_equal_in_each_domain() -> None:
    """Effects of opposite signs cancel in the mean, which is no verdict."""
    seeds = SET_TESTS["seeds"]
    near = lines("near", [0.3, -0.3] * 5)
    cancel = lines("cancel", [2.0 + k / 10 for k in range(6)] + [-3.0 - k / 10 for k in range(4)])
    one = over_sets([*untrained(), *near], ["none"], CONTROL, test=seeds)
    assert {part.verdict for part in of(one, "near").parts.values()} == {"equal"}
    assert of(one, "near").verdict == "equal"
    assert of(one, "near").p_equal == max(p.p_equal for p in of(one, "near").parts.values())
    both = over_sets([*untrained(), *near, *cancel], ["none"], CONTROL, test=seeds)
    assert abs(of(both, "cancel").estimate) < 10
    assert of(both, "cancel").verdict == "mixed"


def test_a_search_again_must_be_equal_in_each_domain() -> None:
    seeds, musts = SET_TESTS["seeds"], {**CONTROL, "again": "equal"}
    for shifts, came_out in (([0.3, -0.3] * 5, True), ([0.3] * 6 + [3.0] * 4, False)):
        found = over_sets([*untrained(), *lines("again", shifts)], ["none"], musts, test=seeds)
        assert of(found, "again").came_out == came_out
        assert of(found, "again").must


def test_a_control_that_ran_on_fewer_sets_and_blind_sets_are_named() -> None:
    musts = {"none": "worse", "half": "below", "permuted": "worse"}
    rows = [*untrained()[:5], *lines("half", [-1.0] * 10)[:5], *lines("permuted", [3.0] * 10)[:1]]
    found = over_sets(rows, ["none"], musts)
    assert controls_text(found, rows) == (
        "Controls: 1 below infonce, as must be. G0 cannot be read: 'permuted' is no worse than "
        "infonce there."
    )
    rows = [*untrained(), *lines("network", [3.0, -3.0] * 5)[:8]]
    found = over_sets(rows, ["none"], {**CONTROL, "network": "better"})
    said = "'network' (8 of 10 sets) is not shown to be better"
    assert said in controls_text(found, rows)


def test_a_control_that_failed_everywhere_is_not_judged() -> None:
    lost = [replace(line("raw", where, None, verdict="failed"), lost=(0, 1)) for where in SETS]
    found = over_sets(
        [*untrained(), *lost, *lines("a", [1.0] * 10)],
        ["none", "raw"],
        {"none": "worse", "raw": "worse"},
    )
    assert of(found, "raw").verdict == "too few sets"


def test_where_training_gains_nothing_there_is_no_verdict_over_sets() -> None:
    flat = lines("none", [0.3] * 10)
    found = over_sets([*flat, *lines("new", [1.0] * 10)], ["none"], CONTROL)
    assert (found.contestants, found.decides) == ([], False)
    assert controls_text(found, flat).startswith("This comparison cannot be read")
    assert over_sets_text(found) == (
        "Training gains nothing clear on G0, G1, G2 and 7 more: there is no verdict over sets."
    )


def test_few_sets_name_the_test_that_takes_them_as_given() -> None:
    five = [*untrained()[:5], *lines("new", [3.0] * 10)[:5]]
    once = [replace(one, row="once", seeds=(0,), differences=(3.0,)) for one in five[5:]]
    assert few_text(over_sets([*five, *once], ["none"], CONTROL)) == (
        "5 data sets are too few for a verdict over sets by the signed-rank test, which takes "
        "six: --test seeds judges on these alone."
    )
    assert few_text(over_sets(five, ["none"], CONTROL, test=SET_TESTS["seeds"])) == ""
    one = [five[0], five[5]]
    assert few_text(over_sets(one, ["none"], CONTROL)) == ""
