"""Whether published values came back, and how often the rule is wrong."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.tables.entries import (
    CAME_BACK,
    MISSED,
    TOO_WIDE,
    WIDEST,
    Entry,
    Value,
    backs,
    entries,
)
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.schema import Row
from counts import times
from made_records import made, small_table

ROOT = Path(__file__).parents[3]
COLLAB = [70.55, 56.74, 70.82, 70.49, 70.51]  # one seed is an outlier; 72.26 ± 1.10 is printed


def back(values: list[float], printed: float, std: float | None = None) -> str:
    return told(Value(fmean(values), stdev(values), len(values)), Value(printed, std))


def told(ours: Value | None, printed: Value, seeds: int | None = 5) -> str:
    return Entry(Row(name="r"), "A", printed, ours, True, seeds).back


def test_a_value_comes_back_or_does_not_or_the_errors_are_too_wide_to_tell() -> None:
    assert back(COLLAB, 72.26, 1.10) == TOO_WIDE, "4.44 points below print"
    narrow = [78.0, 78.4, 78.8]  # two errors are 0.46
    assert [back(narrow, printed) for printed in (78.8, 78.9)] == [CAME_BACK, MISSED]
    limit = Value(80.0, WIDEST, 4)
    assert told(limit, Value(80.5)) == CAME_BACK, "the limit still tells"
    wider = replace(limit, std=WIDEST + 1e-6)
    assert [told(wider, Value(printed)) for printed in (80.5, 82.0)] == [TOO_WIDE, MISSED]


def test_the_papers_own_method_comes_first_and_controls_are_not_counted(tmp_path: Path) -> None:
    table = small_table(
        name="adnce-mine",
        columns={"DD": {"dataset": "DD"}},
        rows=[
            {"name": "No pre-train", "loss": "none", "paper": {"DD": [70.0]}},
            {"name": "new", "loss": "infonce", "paper": {"DD": [70.0]}},
            {"name": "ADNCE, mine", "loss": "adnce", "paper": {"DD": [70.0]}},
        ],
    )
    for row in table.rows:
        for seed in (0, 1):
            made(tmp_path, table.places[row.name, "DD"].work, seed, metrics={"accuracy": 70.0})
    resolved = resolve(table, None, tmp_path)
    assert [one.line.name for one in backs(entries(resolved), table.name)] == ["ADNCE, mine", "new"]


@pytest.mark.parametrize(("printed", "rate"), [(True, 0.08), (False, 0.23)])
def test_how_often_an_equal_value_is_missed(printed: bool, rate: float) -> None:
    """Five normal seeds on both sides; without a printed deviation our error alone counts."""
    rng, n = np.random.default_rng(0), times(10_000)
    found = [
        back(ours, fmean(theirs), stdev(theirs) if printed else None)
        for ours, theirs in rng.normal(size=(n, 2, 5)).tolist()
    ]
    assert np.mean([one == MISSED for one in found]) == pytest.approx(rate, abs=0.01 + 1.5 / n**0.5)


@pytest.mark.parametrize(
    ("ours", "seeds", "verdict"),
    [
        (Value(80.8, 1.0, 5), 5, CAME_BACK),  # 1.26 is allowed
        (Value(80.7, 1.0, 5), 5, MISSED),
        (Value(81.2, 1.0, 5), None, CAME_BACK),  # 0.89 is allowed
        (Value(81.1, 1.0, 5), None, MISSED),
        (Value(80.0, None, 1), 5, ""),
        (Value(80.0, n=5), 5, ""),  # an average
        (None, 5, ""),
    ],
)
def test_a_value_came_back_within_two_standard_errors(
    ours: Value | None, seeds: int | None, verdict: str
) -> None:
    assert told(ours, Value(82.0, 1.0), seeds) == verdict


TABLE = small_table(
    decimals=2,
    protocol={"facts": [{"from": "paper (B)", "evaluation": {"seeds": 5}}]},
    columns={"COLLAB": {"dataset": "COLLAB"}, "DD": {"dataset": "DD"}},
    rows=[
        {"name": "quoted", "paper": {"COLLAB": [80.0, 1.0]}},
        {"name": "new", "loss": "adnce", "paper": {"COLLAB": [72.26, 1.10], "DD": [70.5]}},
    ],
)


def test_a_table_says_the_rule_and_counts_what_came_back(tmp_path: Path) -> None:
    for column in TABLE.columns:
        work = TABLE.places[TABLE.rows[1].name, column].work
        for seed, value in enumerate(COLLAB):
            made(tmp_path, work, seed, metrics={"accuracy": value})
    text = render_table(resolve(TABLE, None, tmp_path), "md")
    assert "our error alone counts" in text, "of one value no deviation is printed"
    assert "Came back: new 0 of 2, 2 too wide to tell." in text
    lines = csv.DictReader(io.StringIO(render_table(resolve(TABLE, None, tmp_path), "csv")))
    assert [line["came_back"] for line in lines] == ["", "", TOO_WIDE, TOO_WIDE]


@pytest.mark.parametrize("table", ["adnce-table10", "renyicl-table6"])
def test_the_findings_count_what_came_back(table: str) -> None:
    resolved = resolve(load_table(table), None, ROOT / "results")
    found = backs(entries(resolved), table)
    finding = next(
        line
        for line in (ROOT / "results" / "README.md").read_text().splitlines()
        if "values of ADNCE's table come back" in line
    )
    for row in ("GraphCL", "ADNCE", "RényiCL"):
        if mine := [one.back for one in found if one.line.name == row]:
            wide = f" with {mine.count(TOO_WIDE)} too wide" if TOO_WIDE in mine else ""
            assert f"{row} {mine.count(CAME_BACK)} of {len(mine)}{wide}" in finding
