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
        assert [one.recipe["lr"] for one in settings_of(table, row)] == rates, row
    temperatures = [one.params["temperature"] for one in settings_of(table, "infonce")]
    assert all(0.1 <= one <= 0.4 for one in temperatures)


def test_a_search_again_without_shared_points_is_a_mistake(path: Path) -> None:
    path.write_text(SWEEP.replace("search: points", "search: staged"))
    with pytest.raises(UserError, match=r"yaml:\d+: infonce again is another search at shared"):
        load_table(str(path))


def test_every_second_point_is_the_limits_and_its_cells_are_shared(path: Path) -> None:
    table = load_table(str(path))
    simple, own = settings_of(table, "infonce"), settings_of(table, "debiased")
    assert own[::2] == simple[::2]
    assert {one.loss for one in own[1::2]} == {"debiased"}
    assert own[1].params == {"temperature": simple[1].params["temperature"]}, "defaults come first"
    assert len({one.params.get("tau_plus") for one in own[1::2]}) == 4


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
