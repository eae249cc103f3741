"""What is done, what is missing, what it will cost: from records alone."""

import re
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import stdev

import pytest

from contrastbench.benchmarks.cli.sweep import sight
from contrastbench.benchmarks.comparison.statistics import ALPHA, noncentrality
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.plan import forecast_line, make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.spec import LossSpec
from made_records import made, small_table

TABLE = small_table(
    columns={
        "A": {"dataset": "MUTAG"},
        "B": {"dataset": "DD"},
        "Q": {},
        "T": {"dataset": "wine", "domain": "tabular"},
    },
    rows=[
        {"name": "quoted", "paper": {"A": [80.0]}},
        {"name": "base", "loss": "infonce", "params": {"temperature": 0.2}},
        {
            "name": "star",
            "loss": "infonce",
            "params_by_column": {"A": {"temperature": 0.2}, "B": {"temperature": 0.3}},
        },
    ],
)


def add(
    results: Path, experiment: Experiment, seed: int, status: str = "ok", seconds: float = 10.0
) -> None:
    made(results, experiment, seed, status=status, seconds=seconds)


def planned(results: Path, seeds: int) -> plan.Plan:
    return plan.Plan(TABLE, plan.runnable_places(TABLE), range(seeds), "paper", results)


def test_states_and_cost_of_the_rest(tmp_path: Path) -> None:
    base = plan.runnable_places(TABLE)[0].work
    runs = [(0, "ok", 10.0), (1, "ok", 20.0), (2, "diverged", 0), (3, "failed", 0), (0, "oom", 0)]
    for run in runs:
        add(tmp_path, base, *run)
    lines = list(plan.plan_lines(planned(tmp_path, 5), Costs(tmp_path)))
    assert lines == [
        "graph MUTAG infonce(temperature=0.2)   2 done, 1 diverged, 1 failed, 1 missing, about "
        "20 s",
        "graph DD infonce(temperature=0.2)      0 done, 5 missing, no forecast",
        "tabular wine infonce(temperature=0.2)  0 done, 5 missing, no forecast",
        "graph DD infonce(temperature=0.3)      0 done, 5 missing, no forecast",
        "tabular wine infonce                   0 done, 5 missing, no forecast",
        "all                                    2 done, 1 diverged, 1 failed, 21 missing, about "
        "20 s, "
        "no forecast for 20",
    ]


def test_missing_cells_that_ship_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    monkeypatch.setattr(plan, "SHIPPED", shipped)
    base, wine = (plan.runnable_places(TABLE)[place].work for place in (0, 2))
    there = [(base, 0), (wine, 0), (base, 1), (base, 9)]
    for work, seed in there:
        add(shipped, work, seed)
    counts = []
    for work, seed in there:
        counts.append(plan.shipped_line(planned(own, 5)).partition(" ")[0])
        add(own, work, seed)
    assert (counts, plan.shipped_line(planned(own, 5))) == (["3", "2", "1", ""], "")


def test_a_plan_says_that_missing_cells_ship(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SHIPPED", tmp_path / "shipped")
    sweep = "seeds: 0-1\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n"
    (tmp_path / "s.yaml").write_text(sweep)
    add(tmp_path / "shipped", Experiment("graph", "MUTAG", LossSpec("infonce"), {}), 1)
    said = "1 of these come with contrastbench: bench merge --shipped adds them\n"
    code, _, err = bench("plan", "s.yaml")
    assert (code, err) == (0, said)


def test_the_whole_cost_is_that_of_done_and_missing_cells_by_set(tmp_path: Path) -> None:
    base, wine = (plan.runnable_places(TABLE)[place].work for place in (0, 2))
    made(tmp_path, base, 0, seconds=10.0, details={"seconds_training": 8.0})
    made(tmp_path, wine, 0, seconds=20.0, details={})
    line = plan.cost_line(planned(tmp_path, 5), Costs(tmp_path)).partition(": ")[2]
    assert line == "wine 3 min 20 s (0 %), MUTAG 50 s (80 %)"


def test_like_cells_differ_in_loss_and_rate_alone_and_the_faster_ones_count(tmp_path: Path) -> None:
    def of(loss: str, dataset: str = "MUTAG", **recipe: float) -> Experiment:
        return Experiment("graph", dataset, LossSpec(loss), recipe)

    for experiment, seconds in (
        (of("adnce"), 7.0),
        (of("dar"), 9.0),
        *((of(loss), seconds) for loss, seconds in (("rince", 8.0), ("cpc", 30.0), ("nwj", 40.0))),
        (of("dar", epochs=1), 1.0),
        (of("dar", "DD"), 99.0),
    ):
        add(tmp_path, experiment, 0, seconds=seconds)
    costs = Costs(tmp_path)
    assert costs.of(of("adnce")) == costs.of(of("hcl")) == costs.of(of("hcl", lr=0.003)) == 8.0
    assert costs.of(of("hcl", epochs=1)) == 1.0
    assert costs.of(of("hcl", epochs=3)) is None, "no record has its number of epochs"
    assert costs.of(of("hcl", "NCI1")) is None
    assert costs.of(Experiment("tabular", "wine", LossSpec("hcl"), {})) is None


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        (["adnce-table1"], "825.94"),  # of images: the page's hours of all cells
        (["adnce-table4", "--seeds", "0-1"], "11.43"),  # of sentences: two of five seeds
        (["adnce-table4", "--tiny"], ""),
        (["adnce-table5", "--seeds", "0"], ""),  # of graphs, whose steps wait for launches
    ],
)
def test_a_papers_table_without_like_records_has_its_counted_hours(
    words: list[str], hours: str, bench, tmp_path: Path
) -> None:
    code, out, _ = bench("plan", *words, "--results", str(tmp_path))
    last = out.splitlines()[-1]
    assert (code, last.startswith(f"at least {hours} h on one card")) == (0, bool(hours))
    assert ("not from records" in last) == bool(hours)


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        (["column=A"], ["base A", "star A"]),
        (["dataset=DD", "row=star"], ["star B"]),
        (["dataset=DD", "dataset = MUTAG", "row=base"], ["base A", "base B"]),
        (["domain=tabular"], ["base T", "star T"]),
    ],
)
def test_only_selects(only: list[str], wanted: list[str]) -> None:
    assert [
        f"{place.row.name} {place.setup.column}" for place in plan.runnable_places(TABLE, only)
    ] == wanted


def test_nothing_to_run_is_0_cells_and_why(tmp_path: Path) -> None:
    places = plan.runnable_places(TABLE, ["row=star", "domain=graph"])
    asked = plan.Plan(TABLE, places, [0, 1], "validation", tmp_path)
    assert list(plan.plan_lines(asked, Costs(tmp_path))) == [
        "0 cells: star on A, B: its parameters are the paper's choice and it declares no grid"
    ]
    assert list(plan.plan_lines(planned(tmp_path, 0), Costs(tmp_path))) == [
        "0 cells: it asks for no seeds: give --seeds"
    ]


def test_tiny_comes_over_the_recipe_of_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "seeds: 0\nlosses: [infonce]\n"
        "domains: {graph: {datasets: [MUTAG], recipe: {epochs: 500, score_at: [100]}}}\n"
    )
    (place,) = plan.runnable_places(load_table(str(file), tiny=True))
    assert place.work.recipe == {"epochs": 2, "limit": 90, "folds": 3, "score_at": ()}
    assert make_recipe("graph", place.work.recipe).epochs == 2


def test_experiments_of_one_label_are_told_apart_by_their_recipes(tmp_path: Path) -> None:
    rows = [
        {"name": "untrained", "loss": "none"},
        {"name": "counts", "loss": "none", "recipe": {"encoder": "raw"}},
        {"name": "trained", "loss": "infonce"},
    ]
    table = small_table(columns={"A": {"dataset": "MUTAG"}}, rows=rows)
    found = plan.Plan(table, plan.runnable_places(table), [0], "paper", tmp_path)
    text = list(plan.plan_lines(found, Costs(tmp_path)))
    labels = ("none (encoder=gin)", "none (encoder=raw)", "infonce")
    assert [line.split("  ")[0] for line in text] == [*(f"graph MUTAG {x}" for x in labels), "all"]


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
    assert re.fullmatch(r"effects from \d+ % of what training gains", sight("standard", results, 1))
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
