"""Shared points: every row has as many, its limit's among them, and a search again has others."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.places import AGAIN_SEEDS
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import UserError
from made_records import made

SWEEP = """
seeds: 0-2
domains: {tabular: {datasets: [wine], temperature: [0.1, 0.4], recipe: {lr: 0.01}}}
losses: [infonce, debiased, spectral, dv, none]
tune: {trials: 8, search: points}
controls: [temperature 5, infonce again]
quick: {datasets: [wine], seeds: 0-2}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path / "sweep.yaml"


def settings_of(table: Table, row: str) -> list[Setting]:
    return list(table.places[row, "wine"].search.trials.settings)  # type: ignore[attr-defined]


def test_every_row_has_as_many_points_and_the_same_rates(path: Path) -> None:
    table = load_table(str(path))
    rates = [one.recipe["lr"] for one in settings_of(table, "infonce")]
    assert len({*rates}) == 8
    assert 5 < max(rates) / min(rates) < 10
    for row in ("debiased", "spectral", "dv"):
        assert [*dict.fromkeys(one.recipe["lr"] for one in settings_of(table, row))] == rates, row
    temperatures = [one.params["temperature"] for one in settings_of(table, "infonce")]
    assert all(0.1 <= one <= 0.4 for one in temperatures)


def test_a_search_again_without_shared_points_is_a_mistake(path: Path) -> None:
    path.write_text(SWEEP.replace("tune: {trials: 8, search: points}", ""))
    with pytest.raises(UserError, match=r"yaml:\d+: infonce again is another search"):
        load_table(str(path))


def test_each_point_has_the_limit_whose_cells_are_shared_and_every_second_the_loss(
    path: Path,
) -> None:
    table = load_table(str(path))
    simple, both = settings_of(table, "infonce"), settings_of(table, "debiased")
    assert [one for one in both if one.loss == "infonce"] == simple
    own = [one for one in both if one.loss == "debiased"]
    assert [one.point for one in own] == [one.point for one in simple[1::2]]
    assert own[0].params == {"temperature": simple[1].params["temperature"]}, "defaults come first"
    assert len({one.params.get("tau_plus") for one in own}) == 4


@pytest.mark.parametrize(("better", "mean"), [(-9.0, 6.0), (1.5, 56.0)])
def test_a_loss_is_its_limit_unless_other_seeds_choose_its_own_settings(
    better: float, mean: float, path: Path, tmp_path: Path
) -> None:
    """Own settings, at 1, 3, 5 and 7 of 0 to 7, are better by that; one counts at each point.

    So the three best are the limit's at 5, 6 and 7, or its own at 5 and 7 and the limit's at 6.
    """
    place = load_table(str(path)).places["debiased", "wine"]
    for one in settings_of(load_table(str(path)), "debiased"):
        own, k = one.loss == "debiased", (one.point or 0) - 1
        about = {
            "details": {"validation": 50 + k + better * own},
            "metrics": {"accuracy": k + 75 * own},
        }
        for seed in range(3):
            made(tmp_path, place.experiment(one), seed, **about)
    lines = {line.name: line for line in resolve(load_table(str(path)), None, tmp_path).lines}
    found = lines["debiased"].cells["wine"].records
    assert [found[seed]["metrics"]["accuracy"] for seed in range(3)] == [mean] * 3


def test_a_search_again_has_other_points_and_other_seeds(path: Path, tmp_path: Path) -> None:
    table = load_table(str(path))
    again, first = settings_of(table, "infonce again"), settings_of(table, "infonce")
    assert not {one.recipe["lr"] for one in again} & {one.recipe["lr"] for one in first}
    plan = make_plan(str(path), ["row=infonce again"], None, False, None, tmp_path)
    assert {task.seed for task in plan.tasks()} == {AGAIN_SEEDS + seed for seed in range(3)}


def test_seeds_are_compared_by_number_and_controls_wait_for_all(path: Path, tmp_path: Path) -> None:
    table = load_table(str(path))

    def fill(row: str, seeds: range) -> None:
        place = table.places[row, "wine"]
        for k, setting in enumerate(settings_of(table, row)):
            for seed in seeds:
                scores = {"details": {"validation": 50.0 + k}, "metrics": {"accuracy": float(k)}}
                made(tmp_path, place.experiment(setting), seed + place.shift, **scores)

    fill("infonce", range(2))
    lines = {line.name: line for line in resolve(table, None, tmp_path).lines}
    assert lines["temperature 5"].cells["wine"].choice.why.startswith("2 of 3 seeds")
    fill("infonce", range(2, 3))
    fill("infonce again", range(3))
    lines = {line.name: line for line in resolve(table, None, tmp_path).lines}
    for name in ("infonce", "infonce again"):
        found = lines[name].cells["wine"].records
        assert {k: one["metrics"]["accuracy"] for k, one in found.items()} == dict.fromkeys(
            range(3), 6.0
        )
    last = settings_of(table, "infonce")[-1]
    assert lines["temperature 5"].cells["wine"].choice.settings[0].recipe["lr"] in {
        one.recipe["lr"] for one in settings_of(table, "infonce")[-3:]
    }
    assert last.loss == "infonce"
