"""Tests of the selection of parameters.

Parameters as published, or chosen on validation data with the same budget for every method.
"""

from collections import Counter
from pathlib import Path

import pytest

from chosen import chosen, trials
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.report.tables import choice_lines, render_table
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import decide, resolve
from contrastbench.benchmarks.tables.schema import Column, Row, Tune
from contrastbench.benchmarks.tables.searches import draw_settings
from contrastbench.benchmarks.tables.table import Selection
from contrastbench.losses import UserError
from made_records import made, small_table

TABLE = small_table(
    domain="tabular",
    columns={"A": {"dataset": "digits-table"}},
    rows=[
        {
            "name": "base",
            "loss": "infonce",
            "grid": {"temperature": [0.1, 0.2]},
            "paper": {"A": [80.0]},
        },
        {
            "name": "new",
            "loss": "adnce",
            "params": {"weight": "gaussian"},
            "grid": {"temperature": [0.1, 0.2, 0.3], "mu": [0.5, 0.7]},
            "params_by_column": {"A": {"temperature": 0.9, "mu": 0.9}},
        },
        {"name": "default", "loss": "infonce", "params": {"temperature": 0.5}},
        {"name": "secret", "loss": "infonce", "params_by_column": {"A": {"temperature": 0.4}}},
    ],
    tune=Tune(seeds=[100, 101]),
)
BASE, NEW, DEFAULT, SECRET = TABLE.rows


def add(
    results: Path,
    work: Experiment,
    seed: int,
    validation: float | None,
    accuracy: float = 50.0,
    **change,
) -> None:
    details = {} if validation is None else {"validation": validation}
    made(results, work, seed, **{"metrics": {"accuracy": accuracy}, "details": details, **change})


def tune(results: Path, row: Row, validations: list[float], **change: float) -> list[Experiment]:
    tried = trials(TABLE, row, "A")
    for work, value in zip(tried, validations, strict=True):
        add(results, work, 100, value - 1, **change)
        add(results, work, 101, value + 1, **change)
    return tried


def test_the_baseline_and_the_new_loss_get_as_many_trials() -> None:
    assert [work.loss.params for work in trials(TABLE, BASE, "A")] == [
        {"temperature": 0.1},
        {"temperature": 0.2},
    ]
    new = [work.loss.params for work in trials(TABLE, NEW, "A")]
    assert len(new) == 2
    assert all(params["weight"] == "gaussian" for params in new)
    assert {params["mu"] for params in new} == {0.5, 0.7}, (
        "each parameter's values are spread over the trials"
    )
    more = TABLE.model_copy(update={"tune": Tune(trials=3)})
    assert len(trials(more, NEW, "A")) == 3
    with pytest.raises(
        UserError, match="small: the grid of base has 2 settings for 3 trials: extend it"
    ):
        trials(more, BASE, "A")


@pytest.mark.parametrize("count", range(1, 13))
def test_a_draw_is_spread_without_repeats(count: int) -> None:
    grid = {"a": [1, 2, 3], "b": [1, 2, 3, 4]}
    drawn = draw_settings(grid, count)
    assert drawn == draw_settings(grid, count)
    assert len({(some["a"], some["b"]) for some in drawn}) == count
    if count < 6:
        for key, values in grid.items():
            counts = [Counter(some[key] for some in drawn)[value] for value in values]
            assert max(counts) - min(counts) <= 1


def test_nothing_is_chosen_before_all_trials_are_done(tmp_path: Path) -> None:
    first, second = trials(TABLE, BASE, "A")
    add(tmp_path, first, 100, 70.0)
    add(tmp_path, first, 101, 70.0)
    add(tmp_path, second, 100, 90.0)
    assert chosen(TABLE, BASE, "A", tmp_path) == "1 of 2 trials are done"
    resolved = resolve(TABLE, "validation", tmp_path)
    assert "base on A: 1 of 2 trials are done" in list(choice_lines(resolved))
    assert "| base | 80.0 / missing |" in render_table(resolved, "md")


def test_trials_on_other_data_do_not_meet(tmp_path: Path) -> None:
    """Trials on an edited file and trials on the old one are compared apart."""
    first, second = tune(tmp_path, BASE, [90.0, 10.0])
    for seed in (100, 101):
        add(tmp_path, second, seed, 95.0, data_hash="1" * 64)
    assert chosen(TABLE, BASE, "A", tmp_path) == first
    for seed in (100, 101):
        add(tmp_path / "apart", first, seed, 90.0)
        add(tmp_path / "apart", second, seed, 95.0, data_hash="1" * 64)
    why = chosen(TABLE, BASE, "A", tmp_path / "apart")
    assert why == "1 of 2 trials are done"


def test_validation_chooses_and_other_seeds_are_shown(tmp_path: Path) -> None:
    """The test accuracies of the trials say the opposite of their validation scores.

    They must not matter.
    """
    worse, better = tune(tmp_path, BASE, [70.0, 60.0]), tune(tmp_path, NEW, [60.0, 61.0])
    add(tmp_path, worse[1], 0, 60.0, accuracy=99.0)
    add(tmp_path, worse[0], 0, 70.0, accuracy=81.0)
    add(tmp_path, worse[0], 1, 70.0, accuracy=83.0)
    resolved = resolve(TABLE, "validation", tmp_path)
    text = render_table(resolved, "md")
    assert "| base | 80.0 / 82.0 ± 1.4 (2) / +2.0 |" in text
    assert "| new | - / missing |" in text, "chosen, not yet confirmed"
    assert "seeds 100, 101" in text
    assert "base on A: temperature=0.1, the best of 2" in text
    mu, temperature = better[1].loss.params["mu"], better[1].loss.params["temperature"]
    assert f"temperature={temperature}, mu={mu}, the best of 2" in text
    assert "small,validation,base,A,infonce,no,80.0000,,,82.0000" in render_table(resolved, "csv")


def test_tuning_seeds_are_in_no_table(tmp_path: Path) -> None:
    tune(tmp_path, BASE, [70.0, 60.0], accuracy=99.0)
    row = BASE.model_copy(update={"params": {"temperature": 0.1}})
    table = TABLE.model_copy(update={"rows": [row]})
    assert "| base | 80.0 / missing |" in render_table(resolve(table, None, tmp_path), "md")
    assert "Selection: paper: parameters as published." in render_table(
        resolve(table, None, tmp_path), "md"
    )


def test_seeds_of_admission_are_in_no_table_that_does_not_name_them(tmp_path: Path) -> None:
    row = BASE.model_copy(update={"params": {"temperature": 0.1}})
    table = TABLE.but(rows=[row], tune=Tune(seeds=[7]))
    work = table.places[row.name, "A"].work
    for seed, score in ((0, 50.0), (104, 90.0)):
        made(tmp_path, work, seed, metrics={"accuracy": score})
    seeds = [
        {*resolve(one, None, tmp_path).lines[0].cells["A"].records}
        for one in (table, table.but(seeds=[0, 104]))
    ]
    assert seeds == [{0}, {0, 104}]


def test_of_equals_the_first_and_of_diverged_none(tmp_path: Path) -> None:
    first, second = tune(tmp_path, BASE, [60.0, 60.0])
    assert chosen(TABLE, BASE, "A", tmp_path) == first
    other = tmp_path / "other"
    for seed in (100, 101):
        add(other, first, seed, 90.0, status="diverged" if seed == 101 else "ok")
        add(other, second, seed, 50.0)
    assert chosen(TABLE, BASE, "A", other) == second
    for seed in (100, 101):
        for work in (first, second):
            add(tmp_path / "none", work, seed, None, status="diverged")
    assert chosen(TABLE, BASE, "A", tmp_path / "none") == "every trial diverged"
    found = decide(TABLE.places["base", "A"], Selection.VALIDATION, tmp_path / "none")
    assert not found.choice.is_open, "no plan promises it"
    text = render_table(resolve(TABLE, "validation", tmp_path / "none"), "md")
    assert "diverged (every trial)" in text


def test_rows_without_a_grid(tmp_path: Path) -> None:
    resolved = resolve(TABLE, "validation", tmp_path)
    assert resolved.lines[2].cells["A"].work.loss.params == {"temperature": 0.5}
    assert {column: cell.choice.why for column, cell in resolved.lines[3].cells.items()} == {
        "A": "its parameters are the paper's choice and it declares no grid"
    }


def test_a_plan_has_trials_first_and_then_what_they_choose(tmp_path: Path) -> None:
    places = plan.runnable_places(TABLE, ["row=base"])
    asked = plan.Plan(TABLE, places, [0, 1], "validation", tmp_path)
    assert [(task.experiment.loss.params, task.seed) for task in asked.tasks()] == [
        ({"temperature": temperature}, seed) for temperature in (0.1, 0.2) for seed in (100, 101)
    ]
    assert [task.experiment for task in asked.later_tasks()] == [asked.places[0].work] * 2
    tune(tmp_path, BASE, [70.0, 60.0])
    assert [(t.experiment.loss.params["temperature"], t.seed, t.state) for t in asked.tasks()][
        4:
    ] == [(0.1, 0, "missing"), (0.1, 1, "missing")]
    assert not asked.later_tasks()


def test_a_record_without_a_validation_score_is_named(tmp_path: Path) -> None:
    for work in trials(TABLE, BASE, "A"):
        for seed in (100, 101):
            add(tmp_path, work, seed, None)
    with pytest.raises(
        UserError, match=r"seed 100: the record has no details.validation to choose by"
    ):
        resolve(TABLE, "validation", tmp_path)


@pytest.mark.parametrize("name", ["adnce-table5", "adnce-table10"])
def test_grids_of_the_paper_hold_what_it_chose(name: str) -> None:
    """ADNCE's Table 9: IMDB-B's temperature is 0.50 there, 0.55 in the README and here."""
    table = load_table(name)
    for row in table.rows:
        for column, params in row.params_by_column.items() if row.grid else ():
            wanted = {**row.params, **params} | ({"temperature": 0.5} if column == "IMDB-B" else {})
            grid = {**row.grid, **row.grid_by_column.get(column, {})}
            assert all(wanted[name] in values for name, values in grid.items())


TURNING = TABLE.model_copy(
    update={"domain": "graph", "columns": {"A": Column(dataset="MUTAG")}, "rows": TABLE.rows[:2]}
)


def test_where_folds_turn_each_chooses_for_itself(tmp_path: Path) -> None:
    """Trials are run with the shown seeds, and no seed tunes alone."""
    asked = plan.Plan(TURNING, plan.runnable_places(TURNING, []), [0, 1], "validation", tmp_path)
    assert len(asked.tasks()) == 2 * 2 * 2
    assert not asked.later_tasks()
    text = render_table(resolve(TURNING, "validation", tmp_path), "md")
    assert "- base, new on A: no seed has all 2 trials yet\n" in text
    inner = {0.1: [60.0, 70.0], 0.2: [65.0, 50.0]}
    for seed in (0, 1):
        for trial in trials(TURNING, BASE, "A"):
            details = {
                "folds": [80.0 + seed, 90.0],
                "inner": inner[trial.loss.params["temperature"]],
            }
            made(tmp_path, trial, seed, metrics={"accuracy": 1.0}, details=details)
    text = render_table(resolve(TURNING, "validation", tmp_path), "md")
    assert "| base | 80.0 / 85.2 ± 0.4 (2) / +5.2 |" in text
    assert "- base on A: of 4 folds 2 chose temperature=0.2, 2 chose temperature=0.1\n" in text
    assert "Selection: validation: each outer fold of each seed has the best of its method" in text
    cells = [line.cells["A"] for line in resolve(TURNING, "validation", tmp_path).lines]
    assert [cell.choice.best_of for cell in cells] == [0, 0], "no trial is the best of all"
    assert {task.state for task in asked.tasks()} == {"done", "missing"}
