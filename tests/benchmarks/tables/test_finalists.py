"""The search by points and finalists, by simulation: scores are made up, nothing is trained."""

from collections.abc import Callable
from itertools import pairwise
from math import log10
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import qmc

from contrastbench.benchmarks.against.compare import nearness
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.report.tables import choice_lines, render_table
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.tables import searches
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.places import AGAIN_SEEDS
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.schema import Setting, Tune
from contrastbench.benchmarks.tables.scores import tiny_recipe
from contrastbench.benchmarks.tables.searches import RATE, Space
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.spec import LossSpec
from made_records import made, small_table

TABLE = small_table(
    name="my",
    domain="tabular",
    columns={"A": {"dataset": "digits-table"}},
    rows=[
        {"name": "infonce", "loss": "infonce"},
        {"name": "debiased", "loss": "debiased"},
        {"name": "none", "loss": "none"},
    ],
    tune=Tune(seeds=[1000, 1001, 1002]),
    seeds=[0, 1, 2],
    sweep=True,
)


@pytest.mark.parametrize(("dimensions", "count"), [(1, 32), (2, 16), (5, 32), (6, 16), (2, 40)])
def test_the_points_are_those_of_scipy(dimensions: int, count: int) -> None:
    theirs = qmc.Sobol(dimensions, scramble=False).random_base2((count - 1).bit_length())
    assert searches.sobol(dimensions, count) == theirs[:count].tolist()


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "dar"])
def test_each_loss_has_sixteen_points_of_its_own_formula(name: str) -> None:
    first, *drawn = Space(LossSpec(name), 0.1).settings
    assert first == Setting({}, {"lr": 0.1}), "its defaults at the recipe's rate"
    assert len({str(one) for one in drawn}) == 15
    for one in drawn:
        get_loss(name, **one.params)


@pytest.mark.parametrize("name", ["", "tabular/letter", "image/CIFAR-10"])
@pytest.mark.parametrize("again", [False, True])
def test_each_part_of_each_range_is_met_once(again: bool, name: str) -> None:
    space = Space(LossSpec("hcl"), 0.01, again=again, name=name)
    assert [*space.ranges] == ["temperature", RATE, "tau_plus", "beta"]
    drawn = space.settings[1:]
    rates = [one.recipe["lr"] for one in drawn]
    warm = [one.params["temperature"] for one in drawn]
    for values, low, high in ((rates, 0.01 * 10**-0.75, 0.01 * 10**0.75), (warm, 0.02, 1.0)):
        shares = sorted(log10(value / low) / log10(high / low) for value in values)
        gaps = [b - a for a, b in pairwise([0.0, *shares, 1.0])]
        assert max(gaps) < 0.2, "a sixteenth apart, but for rounding and the one left out"
        assert len({*values}) == 15


def test_each_set_has_points_of_its_own_that_all_losses_share() -> None:
    """So luck with points is no luck on all sets, and none has one in the middle of the ranges."""
    names = [f"tabular/{k}" for k in range(200)]
    found = {
        name: [
            (one.params["temperature"], one.recipe["lr"])
            for one in Space(LossSpec("infonce"), 0.01, name=name).settings[1:]
        ]
        for name in names
    }
    assert len({str(points) for points in found.values()}) == len(names)
    first = np.array([points[0] for points in found.values()])
    shares = np.log10(first / [0.02, 0.01 * 10**-0.75]) / [np.log10(50), 1.5]
    assert np.allclose(shares.mean(0), 0.5, atol=0.1), "anywhere in the ranges"
    assert np.allclose(shares.std(0), 12**-0.5, atol=0.05)
    for loss in ("hcl", "adnce", "debiased"):
        own = Space(LossSpec(loss), 0.01, name=names[0]).settings[1:]
        assert [(one.params["temperature"], one.recipe["lr"]) for one in own] == found[names[0]]


def test_what_is_given_is_not_searched() -> None:
    space = Space(LossSpec("hcl", {"temperature": 0.3}), 0.1)
    assert [*space.ranges] == [RATE, "tau_plus", "beta"]
    assert {one.params["temperature"] for one in space.settings} == {0.3}
    assert [*Space(LossSpec("infonce + 0.5*decoupled"), 0.1).ranges] == [
        "infonce.temperature",
        "decoupled.temperature",
        RATE,
    ]


def test_a_choice_is_never_searched_and_decides_which_range_a_number_has() -> None:
    assert [*Space(LossSpec("dar"), 0.1).ranges] == [RATE], "two choices"
    drawn = Space(LossSpec("adnce", {"temperature": 0.2, "weight": "gamma"}), 0.1).settings[1:]
    assert {*drawn[0].params} == {"temperature", "weight", "mu", "sigma"}
    assert max(one.params["mu"] for one in drawn) > 1, "mu of a gamma density"


def test_a_smoke_test_has_the_tiny_values_of_the_domain() -> None:
    place = plan.runnable_places(TABLE)[0]
    small = {**place.work.recipe, **tiny_recipe("tabular")}
    assert place.smoke_test(place.setting).recipe == small != place.work.recipe


def test_a_row_with_records_of_two_data_is_named(tmp_path: Path) -> None:
    table = TABLE.but(tune=None)
    for place, hashes in zip(plan.runnable_places(table), ("12", "1"), strict=False):
        for digit in hashes:
            made(tmp_path, place.work, 0, data_hash=digit * 64)
    assert resolve(table, None, tmp_path).other_data == {"A": ["infonce"]}


def asked(results: Path) -> plan.Plan:
    return plan.Plan(TABLE, plan.runnable_places(TABLE), TABLE.seeds, "validation", results)


def round_of(results: Path, truth: Callable[[Experiment, int], float]) -> list[tuple[str, int]]:
    """Make the records of one round of a sweep, as good as an experiment is with a seed."""
    tasks = [task for task in asked(results).tasks() if task.state == "missing"]
    for task in tasks:
        score = truth(task.experiment, task.seed)
        about = {"metrics": {"accuracy": score}, "details": {"validation": score}}
        made(results, task.experiment, task.seed, **about)
    return [(task.experiment.loss.name, task.seed) for task in tasks]


def points() -> list[float]:
    """The temperatures of InfoNCE's points but for the first."""
    tried = TABLE.places["infonce", "A"].search.space.settings  # type: ignore[attr-defined]
    return sorted(one.params["temperature"] for one in tried[1:])


BEST, LUCKY = points()[6], points()[7]


def quality(work: Experiment, seed: int) -> float:
    """One temperature is best, but for luck of its neighbour with the first seed."""
    warm = work.loss.complete.params.get("temperature", 0.5)
    lucky = 1.5 * (LUCKY - BEST) * (seed == 1000 and warm == LUCKY)
    score = 80 - 20 * (abs(warm - BEST) - lucky) - 5 * (work.loss.name == "debiased")
    return max(1.0, score)


def test_a_search_is_sixteen_points_four_finalists_and_fresh_seeds(tmp_path: Path) -> None:
    first = asked(tmp_path)
    assert len(first.tasks()) == 2 * 16 + 3, "and the untrained encoder"
    assert len(first.later_tasks()) == 2 * (4 * 2 + 3)
    text = "\n".join(plan.plan_lines(first, Costs(tmp_path)))
    assert "and then up to 22 cells that these decide on" in text
    assert {seed for name, seed in round_of(tmp_path, quality) if name != "none"} == {1000}
    finals = round_of(tmp_path, quality)
    assert sorted({seed for _, seed in finals}) == [1001, 1002]
    assert len(finals) == 2 * 4 * 2
    shown = round_of(tmp_path, quality)
    assert len(shown) == 2 * 3
    assert {seed for _, seed in shown} == {0, 1, 2}
    assert round_of(tmp_path, quality) == []
    resolved = resolve(TABLE, None, tmp_path)
    lines = list(choice_lines(resolved))
    assert any(f"infonce on A: temperature={BEST:g}, lr=" in line for line in lines), "not luck"
    (chosen,) = resolved.lines[1].cells["A"].choice.settings
    cosine, _ = nearness("debiased", chosen.params)
    told = [line.partition("gradient at cosine ")[2] for line in lines]
    assert [text[:5] for text in told if text] == [f"{cosine:.3f}"], "and none for infonce"
    assert "| infonce | 80.0" in render_table(resolved, "md")


def test_a_setting_at_an_end_of_the_points_is_said(tmp_path: Path) -> None:
    def colder(work: Experiment, seed: int) -> float:
        return 90 - 10 * work.loss.complete.params.get("temperature", 9.0)

    while round_of(tmp_path, colder):
        pass
    resolved = resolve(TABLE, None, tmp_path)
    (setting,) = resolved.lines[0].cells["A"].choice.settings
    assert setting.params["temperature"] == points()[0]
    assert "temperature" in resolved.lines[0].cells["A"].choice.ends
    assert any("at an end: temperature" in one for one in choice_lines(resolved))


def test_one_that_diverges_with_a_further_seed_is_not_chosen(tmp_path: Path) -> None:
    round_of(tmp_path, quality)
    for task in asked(tmp_path).tasks():
        if task.state == "missing":
            bad = task.experiment.loss.params.get("temperature") == BEST and task.seed == 1002
            about = {"details": {"validation": 70.0}, "metrics": {"accuracy": 70.0}}
            made(tmp_path, task.experiment, task.seed, status="diverged" if bad else "ok", **about)
    (infonce, *_), tried = resolve(TABLE, None, tmp_path).lines, {1001, 1002}
    (setting,) = infonce.cells["A"].choice.settings
    assert setting.params["temperature"] != BEST
    assert {*infonce.cells["A"].trial_seeds[0]} <= {1000, *tried}


SUITE = """
seeds: 0-2
domains: {tabular: {datasets: [wine], recipe: {lr: 0.01}}}
losses: [infonce, none]
tune: {}
controls: [temperature 5, infonce again]
quick: {datasets: [wine], seeds: 0-2}
"""


def test_a_search_again_has_seeds_of_its_own_and_is_shown_by_the_others(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SUITE)
    table = load_table(str(path))
    places = plan.runnable_places(table)
    seeds = set[int]()
    while tasks := [
        task
        for task in plan.Plan(table, places, table.seeds, "validation", tmp_path).tasks()
        if task.state == "missing"
    ]:
        for task in tasks:
            score = quality(task.experiment, task.seed)
            about = {"metrics": {"accuracy": score}, "details": {"validation": score}}
            made(tmp_path, task.experiment, task.seed, **about)
            seeds.add(task.seed)
    own = {0, 1, 2, 1000, 1001, 1002}
    assert seeds == own | {seed + AGAIN_SEEDS for seed in own}
    again = next(
        line for line in resolve(table, None, tmp_path).lines if line.control == "infonce again"
    )
    assert {*again.cells["wine"].records} == {0, 1, 2}
    trained = {record["seed"] for record in again.cells["wine"].records.values()}
    assert trained == {2000, 2001, 2002}
    no_suite = load_table(str(path)).but(quick=None)
    (again,) = (
        line for line in resolve(no_suite, None, tmp_path).lines if line.control == "infonce again"
    )
    assert {*again.cells["wine"].records} == {0, 1, 2}, "its trials are no results either"


def test_a_loss_takes_the_temperature_of_a_setting_unless_it_has_one() -> None:
    best = LossSpec("infonce", {"temperature": 0.2})
    assert searches.at_temperature(LossSpec("adnce"), best).params == {"temperature": 0.2}
    for own in (LossSpec("adnce", {"temperature": 0.7}), LossSpec("align_uniform")):
        assert searches.at_temperature(own, best).params == own.params


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_no_seed_is_out_of_its_range(seed: int) -> None:
    with pytest.raises(ValueError, match=r"seeds\.0"):
        small_table(seeds=[seed])
