"""The forecast before a sweep, from like cells."""

from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import stdev

import pytest

from contrastbench.benchmarks.cli.sweep import sight
from contrastbench.benchmarks.comparison.statistics import ALPHA, noncentrality
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.plan import forecast_line, make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses.spec import LossSpec
from made_records import made

SUITE = """\
seeds: 0-7
tune: {trials: 12}
quick: {datasets: [MUTAG], seeds: 0-2}
domains:
  graph: {datasets: [MUTAG]}
  tabular: {datasets: [wine, iris]}
losses: [infonce]
"""


def suite(folder: Path) -> str:
    """Write a suite, and a record of each set but iris that took so many seconds."""
    path = folder / "mine.yaml"
    path.write_text(SUITE)
    table = load_table(str(path))
    for column, seconds in (("MUTAG", 10.0), ("wine", 5.0)):
        made(folder, table.places[table.rows[0].name, column].work, 9, seconds=seconds)
    return str(path)


def said(folder: Path, name: str, only: str = "", quick: bool = False) -> str:
    """Return the forecast of hcl, which joins."""
    about = ([only] if only else [], None, False, None, folder, False, [LossSpec("hcl")], quick)
    return forecast_line(make_plan(name, *about), Costs(folder))


def test_trials_later_stages_and_what_they_choose_are_all_counted(tmp_path: Path) -> None:
    graph, table = 12 * 8, 12 + 4 * 2 + 8  # folds choose among trials of the shown seeds
    assert said(tmp_path, suite(tmp_path)) == (
        f"{graph + 2 * table} cells, about 18 min 20 s, no forecast for 28"
    )
    assert said(tmp_path, suite(tmp_path), only="dataset=wine") == (
        f"{table} cells, about 2 min 20 s"
    )


def test_points_have_one_seed_of_trials_and_folds_have_the_shown_ones(tmp_path: Path) -> None:
    plan = make_plan(suite(tmp_path), ["dataset=wine"], None, False, None, tmp_path)
    assert {task.seed for task in plan.tasks()} == {1000}
    plan = make_plan(suite(tmp_path), ["dataset=MUTAG"], None, False, None, tmp_path)
    assert {task.seed for task in plan.tasks()} == set(range(8))
    assert plan.table.tuning_seeds == (1000, 1001, 1002)


def test_a_sweep_of_a_loss_that_joins_begins_with_it(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = suite(tmp_path)

    def run(*_: object) -> Iterator[tuple[str, bool]]:
        yield "it ran", False

    monkeypatch.setattr("contrastbench.benchmarks.sweeps.sweep.run_plan", run)
    words = ["sweep", name, "--loss", "npair", "--results", str(tmp_path)]
    code, out, err = bench(*words, "--only", "dataset=MUTAG", "--jobs", "2")
    assert (code, out) == (0, "it ran\n")
    assert err == "forecast: 96 cells, about 16 min 00 s\n"
    code, _, err = bench(*words, "--quick", "--only", "dataset=wine")
    assert (code, "unknown dataset in mine-quick 'wine'" in err) == (2, True)


def test_a_quick_part_costs_its_seeds_alone(tmp_path: Path) -> None:
    quick = said(tmp_path, suite(tmp_path), quick=True)
    assert quick == "3 cells, about 30 s"


def test_a_quick_part_without_the_baselines_trials_says_what_brings_them(
    bench, tmp_path: Path
) -> None:
    words = ["sweep", suite(tmp_path), "--loss", "npair", "--quick", "--results", str(tmp_path)]
    code, _, err = bench(*words)
    assert code == 2
    assert "mine-quick has nothing to run: npair on MUTAG: infonce: no seed of its baseline" in err
    assert "bench merge --shipped adds what ships" in err


def test_a_sweep_of_unknown_cells_says_nothing_and_a_join_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("seeds: 0\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n")
    plan = make_plan(str(path), [], None, False, None, tmp_path)
    assert forecast_line(plan, Costs(tmp_path)) == ""
    assert said(tmp_path, str(path)) == "1 cell, no forecast"


def test_a_quick_join_sees_what_losses_that_ran_would_have_seen_alone(tmp_path: Path) -> None:
    results = Path(__file__).parents[3] / "results"
    assert sight("standard", results, 1) == "large ones alone", "seven sets bear no verdict"
    assert sight("standard", tmp_path, 1) == "large ones alone"


def test_a_quick_part_of_many_sets_names_the_effect_that_it_sees(tmp_path: Path) -> None:
    path, sets = tmp_path / "many.yaml", ["wine", "iris", "letter", "nursery", "car"]
    path.write_text(
        f"seeds: 0-2\ndomains: {{tabular: {{datasets: {sets}}}}}\n"
        f"quick: {{seeds: 0, datasets: {sets}}}\nlosses: [none, infonce, adnce]\n"
    )
    table, effects = load_table(str(path)), [1.0, 3.0, 5.0, 7.0, 9.0]  # percent of a gain of ten
    for name, effect in zip(sets, effects, strict=True):
        for row, accuracy in (("none", 50.0), ("infonce", 60.0), ("adnce", 60.0 + effect / 10)):
            there = {"metrics": {"accuracy": accuracy}, "data_hash": f"{name:0<64}"}
            made(tmp_path, table.places[row, name].work, 0, **there)
    error = stdev(effects) / sqrt(5)
    least = [noncentrality(4, ALPHA / joining) * error for joining in (1, 3)]
    for joining, percent in zip((1, 3), least, strict=True):
        assert sight(str(path), tmp_path, joining) == (
            f"effects from {percent:.0f} % of what training gains"
        )
    assert round(least[0]) < round(least[1])
