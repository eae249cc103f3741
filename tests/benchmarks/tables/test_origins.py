"""Records that a table does not count: none has run, their loss was edited, or of other data."""

import csv
import shutil
from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.tables import resolved as resolving
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.domains.graph import DATASETS
from contrastbench.losses.spec import LossSpec
from made_records import add, made, small_table

SWEEP = """
seeds: 0-3
domains:
  graph: {datasets: [MUTAG, PROTEINS]}
losses: [infonce, adnce, hcl]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results beside shipped ones of InfoNCE and, on one set, of ADNCE."""
    shipped = tmp_path / "shipped"
    monkeypatch.setattr(resolving, "SHIPPED", shipped)
    for seed in range(3):
        add(shipped, seed, 80.0, dataset="MUTAG")
        add(shipped, seed, 70.0, dataset="PROTEINS")
    add(shipped, 0, 81.0, "adnce", dataset="MUTAG")
    (tmp_path / "my.yaml").write_text(SWEEP)
    return tmp_path / "own"


def resolved(own: Path, results: Path | None = None) -> Resolved:
    return resolve(load_table(str(own.parent / "my.yaml")), None, results or own)


def test_an_empty_folder_is_told_where_records_come_from(own: Path, bench) -> None:
    words = ("table", str(own.parent / "my.yaml"), "--results", str(own))
    line = f"no records of {words[1]} in {own}: bench sweep {words[1]} makes them"
    shipped = ", bench merge --shipped adds those that come with contrastbench\n"
    assert bench(*words)[2] == line + shipped
    shutil.rmtree(own.parent / "shipped")
    assert bench(*words)[2] == line + "\n"
    add(own, 0, 80.0, dataset="MUTAG")
    assert bench(*words)[2] == ""


def test_a_loss_that_was_edited_since_it_ran_is_named(
    own: Path, monkeypatch: pytest.MonkeyPatch, bench
) -> None:
    monkeypatch.chdir(own.parent)
    text = "from contrastbench.losses.library.infonce import InfoNCE\n\nclass Mine(InfoNCE): pass\n"
    Path("mine.py").write_text(text)
    Path("my.yaml").write_text(SWEEP.replace("hcl", "mine.py:Mine"))
    assert not resolved(own).edited, "it has not run"
    path = add(own, 0, 80.0, "mine.py:Mine")
    assert not resolved(own).edited
    add(own, 1, 80.0, "mine.py:Mine", status="failed")
    with Path("mine.py").open("a") as file:
        file.write("# edited\n")
    said = "mine.py:Mine: edited after the records were made, which do not count."
    assert resolved(own).edited == ["mine.py:Mine"]
    assert said in bench("table", "my.yaml", "--results", str(own))[1]
    assert said in bench("compare", "my.yaml", "--results", str(own))[2]
    path.unlink()
    assert not resolved(own).edited


def test_what_lacks_is_said_of_each_row_with_its_columns(own: Path) -> None:
    for seed in range(4):
        add(own, seed, 80.0, dataset="MUTAG")
    found = [line.partition(": ")[0] for line in resolving.lacking(resolved(own).cells)]
    assert found == ["infonce on PROTEINS", *(f"{x} on MUTAG, PROTEINS" for x in ("adnce", "hcl"))]


def test_a_loss_that_a_table_has_does_not_join_it(own: Path) -> None:
    losses = [LossSpec("adnce"), LossSpec("kcl")]
    rows = load_table(str(own.parent / "my.yaml"), losses=losses).rows
    assert [row.loss for row in rows] == ["infonce", "adnce", "hcl", "kcl"]
    assert not any(row.beside for row in rows)  # but in a quick look


TABLE = small_table(
    columns={"DD": {"dataset": "DD"}, "MUTAG": {"dataset": "MUTAG"}},
    rows=[
        {"name": "base", "loss": "infonce", "paper": {"DD": [80.0], "MUTAG": [90.0]}},
        {"name": "new", "loss": "adnce"},
    ],
)
(COPY,) = DATASETS["DD"].copies


def put(filled: Path, row: int, column: str, seed: int, accuracy: float, data: str) -> None:
    work = TABLE.places[TABLE.rows[row].name, column].work
    details = {"folds": [accuracy, accuracy]}
    metrics = {"accuracy": accuracy}
    made(filled, work, seed, metrics=metrics, details=details, data_hash=data)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Five seeds on a copy of DD, then two with the set's own file; MUTAG in one form alone."""
    for seed in range(5):
        for row in (0, 1):
            put(tmp_path, row, "DD", seed, 70.0 + row + seed % 2, COPY)
    for seed in range(2):
        put(tmp_path, 0, "DD", seed, 79.0, "f" * 64)
    put(tmp_path, 0, "MUTAG", 0, 86.0, "0" * 64)
    return tmp_path


def test_a_number_is_of_one_data_and_others_are_named(filled: Path) -> None:
    text = render_table(resolve(TABLE, None, filled), "md")
    assert "| base | 80.0 / 79.0 ± 0.0 (2) / -1.0 | 90.0 / 86.0 (1) / -4.0 |" in text
    assert "\nDD: base also has records of other data, which no number here is of.\n" in text
    assert "| new | - / 71.4 ± 0.5 (5) | - / missing |" in text
    assert f"\nDD, data {COPY[:12]}: not the published set's own file, converted from lists" in text
    lines = csv.DictReader(render_table(resolve(TABLE, None, filled), "csv").splitlines())
    assert [line["data"] for line in lines][:2] == ["f" * 12, "0" * 12]


def test_data_that_both_rows_have_are_compared(filled: Path) -> None:
    compared = {(one.row, one.column): one for one in compare(resolve(TABLE, None, filled)).places}
    assert compared["new", "DD"].seeds == (0, 1, 2, 3, 4)
    assert compared["new", "DD"].difference == pytest.approx(1.0)
