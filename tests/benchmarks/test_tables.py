"""Published tables: complete, runnable, rendered from records alone."""

from pathlib import Path

import pytest

from contrastbench.benchmarks import tables
from contrastbench.benchmarks.records import SCHEMA, Cell, publish
from contrastbench.benchmarks.tables import Table, entries, experiment, load, names, render
from contrastbench.domains.datasets import DATASETS
from contrastbench.domains.recipes import make_recipe
from contrastbench.losses import UserError, get_loss

SMALL = Table(
    name="small",
    title="t",
    source="s",
    decimals=1,
    domain="graph",
    metric="accuracy",
    columns={"A": {"dataset": "MUTAG"}, "B": {"dataset": "DD", "recipe": {"augmentation": "random3"}}},
    average="AVG",
    rows=[
        {"name": "quoted", "paper": {"A": [80.0, 1.0], "AVG": [70.0]}},
        {"name": "ours", "loss": "infonce", "params": {"temperature": 0.2}, "paper": {"A": [85.0, 0.5]}},
    ],
)


def add(results: Path, column: str, seed: int, accuracy: float, **change: object) -> None:
    """The record of a seed of the row "ours"."""
    recipe = make_recipe("graph", SMALL.columns[column].recipe)
    fields = {
        "domain": "graph",
        "dataset": SMALL.columns[column].dataset,
        "loss": "infonce",
        "loss_code": "",
        "params": {"temperature": 0.2},
        "recipe": recipe.model_dump(mode="json"),
        "protocol": recipe.protocol,
        "data_hash": "0" * 64,
        "seed": seed,
        "status": "ok",
        **change,
    }
    cell = Cell(**{k: v for k, v in fields.items() if k != "status"})
    publish({"schema": SCHEMA, **fields, "metrics": {"accuracy": accuracy}, "main": "accuracy"}, cell.path(results))


@pytest.mark.parametrize("name", names())
def test_every_table_can_be_run_and_rendered(name: str, tmp_path: Path) -> None:
    table = load(name)
    assert table.source
    for row in table.rows:
        assert set(row.paper) <= {*table.columns, table.average}
        assert set(row.params_by_column) <= set(table.columns)
        assert row.loss or row.paper, "a row is run or quoted"
        for column, what in table.columns.items():
            if row.loss and what.dataset:
                work = experiment(table, row, column)
                assert DATASETS[work.dataset].domain == work.domain
                assert work.full_recipe.protocol
                assert row.loss == "none" or get_loss(row.loss, **work.params).params == work.full_params
    assert "missing" in render(table, tmp_path, "md")
    lines = render(table, tmp_path, "csv").splitlines()
    assert len(lines) == 1 + len(table.rows) * (len(table.columns) + (table.average is not None))


def test_published_values_average_to_the_published_average() -> None:
    table = load("adnce-table10")
    for row in table.rows:
        values = {column: row.paper[column][0] for column in table.columns if row.paper}
        if row.name == "InfoGraph":
            values["COLLAB"] = 70.65  # printed as 70.05, which the table's notes say
        if values:
            assert sum(values.values()) / 8 == pytest.approx(row.paper["AVG."][0], abs=0.0051), row.name


def test_the_two_tables_quote_the_same_adnce_runs() -> None:
    five, ten = ({row.name: row for row in load(name).rows} for name in ("adnce-table5", "adnce-table10"))
    for column, (mean, _) in five["ADNCE"].paper.items():
        assert round(ten["ADNCE"].paper[column][0], 1) == mean


def test_the_two_tables_quote_the_same_renyicl_runs() -> None:
    five, fourteen = ({row.name: row.paper for row in load(f"renyicl-table{n}").rows} for n in (5, 14))
    same = {
        "CovType Base": "CovType No Aug.",
        "CovType Hard": "CovType FC",
        "Higgs-100K Base": "Higgs No Aug.",
        "Higgs-100K Hard": "Higgs RM",
    }
    for method, paper in five.items():
        for column, other in same.items():
            gamma = {"C": "1.1", "H": "1.2"}[column[0]]
            name = f"RMLCPC (gamma = {gamma})" if method == "RMLCPC" else method
            assert paper[column][0] == fourteen[name][other][0]


def test_a_column_without_a_dataset_is_quoted(tmp_path: Path) -> None:
    columns = {**SMALL.columns, "C": tables.Column()}
    rows = [*SMALL.rows[:1], SMALL.rows[1].model_copy(update={"paper": {"C": [60.0]}})]
    quoted = SMALL.model_copy(update={"columns": columns, "rows": rows})
    assert "| ours | - / missing | - / missing | 60.0 | - / missing |" in render(quoted, tmp_path, "md")


def test_a_mean_says_its_seeds_and_its_difference(tmp_path: Path) -> None:
    for seed, accuracy in enumerate((86.0, 88.0)):
        add(tmp_path, "A", seed, accuracy)
    text = render(SMALL, tmp_path, "md")
    assert "| ours | 85.0 ± 0.5 / 87.0 ± 1.4 (2) / +2.0 | - / missing | - / missing |" in text
    assert "| quoted | 80.0 ± 1.0 | - | 70.0 |" in text
    assert "small,ours,A,infonce,85.0000,0.5000,87.0000,1.4142,2,2.0000" in render(SMALL, tmp_path, "csv")


def test_one_seed_has_no_deviation_and_the_average_waits_for_all_columns(tmp_path: Path) -> None:
    add(tmp_path, "A", 0, 86.0)
    assert "/ 86.0 (1) / +1.0 | - / missing | - / missing |" in render(SMALL, tmp_path, "md")
    add(tmp_path, "B", 0, 76.0)
    assert "| - / 76.0 (1) | - / 81.0 |" in render(SMALL, tmp_path, "md")


@pytest.mark.parametrize(
    "change",
    [
        {"status": "diverged"},
        {"params": {"temperature": 0.3}},
        {"recipe": make_recipe("graph", {"epochs": 1}).model_dump(mode="json")},
        {"protocol": "another/1"},
        {"loss": "adnce"},
        {"dataset": "DD"},
    ],
)
def test_only_records_of_exactly_this_cell_count(tmp_path: Path, change: dict) -> None:
    add(tmp_path, "A", 0, 86.0, **change)
    assert [entry.ours for entry in list(entries(SMALL, tmp_path))[1]] == [None, None, None]


def test_a_record_older_than_a_recipe_key_still_counts_once(tmp_path: Path) -> None:
    old = make_recipe("graph", {}).model_dump(mode="json")
    del old["schedule"]
    add(tmp_path, "A", 0, 86.0, recipe=old)
    assert "/ 86.0 (1) /" in render(SMALL, tmp_path, "md")
    add(tmp_path, "A", 0, 86.0)
    assert "/ 86.0 (1) /" in render(SMALL, tmp_path, "md"), "one value a seed"


def test_records_of_different_data_are_not_averaged(tmp_path: Path) -> None:
    add(tmp_path, "A", 0, 86.0)
    add(tmp_path, "A", 1, 86.0, data_hash="1" * 64)
    with pytest.raises(UserError, match="2 different data files"):
        render(SMALL, tmp_path, "md")


def test_names_and_formats_answer_with_the_closest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown table 'adnce-tabel5': did you mean"):
        load("adnce-tabel5")
    with pytest.raises(UserError, match="unknown format 'mdd': did you mean 'md'"):
        render(SMALL, tmp_path, "mdd")


def test_a_users_own_file_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "title: t\nsource: s\ndecimals: 1\ndomain: graph\nmetric: accuracy\n"
        "columns: {A: {dataset: MUTAG}}\nrows: [{name: ours, loss: infonce, params: {temperature: 0.2}}]\n"
    )
    table = load(str(tmp_path / "mine.yaml"))
    assert table.name == "mine"
    add(tmp_path, "A", 0, 86.0)
    assert "| ours | - / 86.0 (1) |" in render(table, tmp_path, "md")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("title: x\nrow: []\n", ":2: unknown key 'row': did you mean 'rows'?"),
        ("title: x\ntitle: y\n", ":2: the key 'title' was given in line 1 already"),
        ("title: x\n", ":1: the key 'source' is missing"),
        ("title: x\nsource: s\ndecimals: one\n", ":3: decimals='one': input should be a valid integer"),
    ],
)
def test_a_wrong_file_is_named_with_the_line(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load(str(tmp_path / "bad.yaml"))
    assert str(error.value).startswith(f"{tmp_path / 'bad.yaml'}{what}")
    assert "\n" not in str(error.value)
