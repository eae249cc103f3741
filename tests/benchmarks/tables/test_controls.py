"""Control rows of a sweep: which there are, their recipes, and the setting that they take."""

from pathlib import Path

import pytest

from chosen import chosen, trials
from contrastbench.benchmarks.comparison.compare import baseline_row
from contrastbench.benchmarks.tables import searches
from contrastbench.benchmarks.tables.controls import CONTROLS
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import decide, resolve
from contrastbench.benchmarks.tables.schema import Row, Setting
from contrastbench.benchmarks.tables.searches import Choice
from contrastbench.benchmarks.tables.table import Selection, Table
from contrastbench.losses.spec import LossSpec
from made_records import made

USUAL = [name for name, control in CONTROLS.items() if control.usual]
SWEEP = """\
seeds: 0-1
controls: true
domains: {graph: {}, tabular: {}, image: {}, sentence: {}}
losses: [adnce, {infonce: {temperature: 0.2}}]
"""


def sweep(folder: Path, text: str = SWEEP, name: str = "mine.yaml") -> Table:
    path = folder / name
    path.write_text(text)
    return load_table(str(path))


def row_of(table: Table, name: str) -> Row:
    return next(row for row in table.rows if row.name == name)


def column_in(table: Table, domain: str) -> str:
    return next(name for name, column in table.columns.items() if column.domain == domain)


def test_each_control_is_a_last_row_and_the_first_infonce_is_their_baseline(tmp_path: Path) -> None:
    table = sweep(tmp_path)
    assert [row.name for row in table.rows[2:]] == USUAL
    losses = [(row.loss, row.params) for row in table.rows[2:]]
    tuned = ("infonce", {"temperature": 0.2})
    assert losses == [("none", {}), ("none", {}), tuned, tuned, tuned, ("cross_entropy", {})]


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        ("graph", ["raw", None, True, 10, "supervised", "supervised"]),
        ("tabular", ["raw", None, True, 10, "supervised", "supervised"]),
        ("image", ["raw", None, True, 12, "supervised", "supervised"]),
        ("sentence", [None, None, True, 1, None, None]),
    ],
)
def test_each_domain_has_those_that_its_recipe_allows(
    tmp_path: Path, domain: str, values: list[object]
) -> None:
    table = sweep(tmp_path)
    column = column_in(table, domain)
    keys = ["encoder", "", "permuted", "epochs", "pairing", "pairing"]
    for name, key, value in zip(USUAL, keys, values, strict=True):
        row = row_of(table, name)
        if key and value is None:
            assert (row.name, column) not in table.places, name
        else:
            recipe = table.places[row.name, column].work.full_recipe
            assert not key or getattr(recipe, key) == value, name


def test_a_listed_none_is_the_untrained_control(tmp_path: Path) -> None:
    table = sweep(tmp_path, SWEEP.replace("[adnce", "[none, adnce"))
    assert row_of(table, "none").control == "untrained"
    assert "untrained" not in [row.name for row in table.rows]


def test_a_control_is_no_baseline_of_a_comparison(tmp_path: Path) -> None:
    text = SWEEP.replace("[adnce, {infonce: {temperature: 0.2}}]", "[none, adnce]")
    table = sweep(tmp_path, text)
    assert baseline_row(resolve(table, None, tmp_path)).name == "adnce"
    assert row_of(table, "half the epochs").loss == "adnce"


def test_a_file_that_extends_adds_controls_for_all_columns(tmp_path: Path) -> None:
    sweep(tmp_path, "seeds: 0-1\ndomains: {graph: {}}\nlosses: [infonce, adnce]\n", "base.yaml")
    table = sweep(tmp_path, "extends: base.yaml\ncontrols: true\ndomains: {tabular: {}}\n")
    assert [row.name for row in table.rows[2:]] == USUAL
    assert list(row_of(table, "half the epochs").recipe_by_column) == list(table.columns)


def test_a_loss_joins_before_the_controls(tmp_path: Path) -> None:
    sweep(tmp_path)
    table = load_table(str(tmp_path / "mine.yaml"), losses=[LossSpec("infonce", {})])
    assert [row.name for row in table.rows[2:]] == ["infonce", *USUAL]
    assert table.joined == ["infonce"]


def test_a_control_has_no_trials_and_takes_what_its_baseline_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune = "tune: {trials: 4}\ncontrols: [half the epochs, cross entropy, temperature 5]"
    text = SWEEP.replace("controls: true", tune).replace("{infonce: {temperature: 0.2}}", "infonce")
    table = sweep(tmp_path, text)
    column, row = column_in(table, "tabular"), row_of(table, "half the epochs")
    assert trials(table, row, column, tmp_path) == []
    found = decide(table.places[row.name, column], Selection.VALIDATION, tmp_path)
    assert found.choice.is_open
    assert chosen(table, row, column, tmp_path) == "0 of 4 trials are done"
    best = Setting({"temperature": 0.1}, {"lr": 0.5})
    monkeypatch.setattr(searches, "best_setting", lambda *_: Choice([best]))
    work = chosen(table, row, column, tmp_path)
    assert (work.loss.params, work.recipe["lr"], work.recipe["epochs"]) == (best.params, 0.5, 10)
    for name, loss in (
        ("cross entropy", LossSpec("cross_entropy")),
        ("temperature 5", LossSpec("infonce", {"temperature": 5.0})),
    ):
        other = chosen(table, row_of(table, name), column, tmp_path)
        assert (other.loss, other.recipe["lr"]) == (loss, 0.5), "all else is as chosen"


def test_a_control_of_another_loss_reads_the_trials_of_its_baseline(tmp_path: Path) -> None:
    tune = "tune: {trials: 2, seeds: [1000]}\ncontrols: [cross entropy]"
    text = SWEEP.replace("controls: true", tune).replace("{infonce: {temperature: 0.2}}", "infonce")
    table = sweep(tmp_path, text)
    column, network = column_in(table, "tabular"), row_of(table, "cross entropy")
    assert chosen(table, network, column, tmp_path) == "0 of 2 trials are done"
    for trial in trials(table, row_of(table, "infonce"), column):
        for seed in table.budget.seeds:
            made(tmp_path, trial, seed, details={"validation": 0.5})
    assert not isinstance(chosen(table, network, column, tmp_path), str)


FOLDED = """\
seeds: 0-2
domains: {graph: {datasets: [MUTAG]}}
losses: [infonce, none]
tune: {trials: 4}
controls: [permuted positives]
quick: {datasets: [MUTAG], seeds: 0}
"""


def test_where_folds_choose_a_control_takes_what_most_of_them_chose(tmp_path: Path) -> None:
    table = sweep(tmp_path, FOLDED)
    control, base = row_of(table, "permuted positives"), row_of(table, "infonce")
    tried = trials(table, base, "MUTAG")
    inner = [[1.0, 1.0, 5.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 2.0]]
    for seed in range(3):
        for work, folds in zip(tried, inner, strict=True):
            made(tmp_path, work, seed, details={"folds": folds, "inner": folds})
        found = chosen(table, control, "MUTAG", tmp_path)
        if seed < 2:
            have = f"{seed + 1} of 3 seeds of its baseline have all 4 trials so far"
            assert found == have
    assert not isinstance(found, str)
    assert (found.loss, found.recipe["permuted"]) == (tried[1].loss, True)
    assert found.recipe["lr"] == tried[1].recipe["lr"]


def test_a_control_waits_for_no_baseline_that_has_failed(tmp_path: Path) -> None:
    table = sweep(tmp_path, FOLDED)
    control = row_of(table, "permuted positives")
    assert chosen(table, control, "MUTAG", tmp_path).startswith("no seed of its baseline has all")
    for work in trials(table, row_of(table, "infonce"), "MUTAG"):
        for seed in range(3):
            made(tmp_path, work, seed, status="diverged")
    why = chosen(table, control, "MUTAG", tmp_path)
    assert why == "its baseline has failed with every seed"


def test_controls_are_listed_by_name_and_keep_their_order(tmp_path: Path) -> None:
    listed = "controls: [pairs by class, temperature 5]"
    table = sweep(tmp_path, SWEEP.replace("controls: true", listed))
    assert [row.name for row in table.rows[2:]] == ["temperature 5", "pairs by class"]
    row = row_of(table, "temperature 5")
    assert (row.loss, row.params, row.control) == ("infonce", {"temperature": 5.0}, row.name)
    extends = "extends: mine.yaml\ncontrols: [untrained]\ndomains: {tabular: {datasets: [wine]}}\n"
    wider = sweep(tmp_path, extends, "wider.yaml")
    assert wider.controls == ["untrained", "temperature 5", "pairs by class"]
    assert (row_of(wider, "temperature 5").name, "wine") in wider.places


def test_a_baseline_without_a_temperature_has_no_control_of_it(tmp_path: Path) -> None:
    text = SWEEP.replace("controls: true", "controls: [untrained, temperature 5]")
    table = sweep(
        tmp_path, text.replace("[adnce, {infonce: {temperature: 0.2}}]", "[align_uniform]")
    )
    assert [row.name for row in table.rows] == ["align_uniform", "untrained"]
