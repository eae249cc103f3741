"""Records of several data in one table: never one mean, other data and copies are named."""

import csv
from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.domains.graph import DATASETS
from made_records import made, small_table

TABLE = small_table(
    columns={"DD": {"dataset": "DD"}, "MUTAG": {"dataset": "MUTAG"}},
    rows=[
        {"name": "base", "loss": "infonce", "paper": {"DD": [80.0], "MUTAG": [90.0]}},
        {"name": "new", "loss": "adnce"},
    ],
)
(COPY,) = DATASETS["DD"].copies


def add(results: Path, row: int, column: str, seed: int, accuracy: float, data: str) -> None:
    work = TABLE.places[TABLE.rows[row].name, column].work
    details = {"folds": [accuracy, accuracy]}
    metrics = {"accuracy": accuracy}
    made(results, work, seed, metrics=metrics, details=details, data_hash=data)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Five seeds on a copy of DD, then two with the set's own file; MUTAG in one form alone."""
    for seed in range(5):
        for row in (0, 1):
            add(tmp_path, row, "DD", seed, 70.0 + row + seed % 2, COPY)
    for seed in range(2):
        add(tmp_path, 0, "DD", seed, 79.0, "f" * 64)
    add(tmp_path, 0, "MUTAG", 0, 86.0, "0" * 64)
    return tmp_path


def test_a_number_is_of_one_data_and_others_are_named(results: Path) -> None:
    text = render_table(resolve(TABLE, None, results), "md")
    assert "| base | 80.0 / 79.0 ± 0.0 (2) / -1.0 | 90.0 / 86.0 (1) / -4.0 |" in text
    assert "\nDD: base also has records of other data, which no number here is of.\n" in text
    assert "| new | - / 71.4 ± 0.5 (5) | - / missing |" in text
    assert f"\nDD, data {COPY[:12]}: not the published set's own file, converted from lists" in text
    lines = csv.DictReader(render_table(resolve(TABLE, None, results), "csv").splitlines())
    assert [line["data"] for line in lines][:2] == ["f" * 12, "0" * 12]


def test_data_that_both_rows_have_are_compared(results: Path) -> None:
    compared = {(one.row, one.column): one for one in compare(resolve(TABLE, None, results)).places}
    assert compared["new", "DD"].seeds == (0, 1, 2, 3, 4)
    assert compared["new", "DD"].difference == pytest.approx(1.0)
