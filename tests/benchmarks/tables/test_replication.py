"""Whether published values came back: both rules against scipy, and how often they are wrong."""

import csv
import io
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.tables.entries import Entry, Value, backs, entries
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.replication import (
    CAME_BACK,
    MISSED,
    TOO_WIDE,
    WIDEST,
    Back,
    Centre,
    trimmed,
)
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.schema import Row
from counts import times
from made_records import made, small_table

ROOT = Path(__file__).parents[3]
COLLAB = [70.55, 56.74, 70.82, 70.49, 70.51]  # one seed is an outlier; 72.26 ± 1.10 is printed


def both(values: list[float], printed: float, error: float | None) -> Back:
    """Return a value by both rules."""
    mean = Centre(fmean(values), stdev(values) / len(values) ** 0.5)
    return Back("r", "A", mean, trimmed(values) or mean, printed, error)


def test_the_trimmed_mean_has_the_error_of_yuens_test() -> None:
    """Scipy's statistic of two samples is their difference over both errors together."""
    for seed in range(times(500)):
        rng = np.random.default_rng(seed)
        ours, theirs = (np.round(rng.standard_t(2, rng.integers(2, 12)), 1) for _ in range(2))
        a, b = trimmed(ours.tolist()), trimmed(theirs.tolist())
        assert a is not None
        assert b is not None
        assert a.value == pytest.approx(stats.trim_mean(ours, 0.2))
        if a.error or b.error:
            together = (a.value - b.value) / np.hypot(a.error, b.error)
            found = stats.ttest_ind(ours, theirs, equal_var=False, trim=0.2).statistic
            assert together == pytest.approx(found), (ours, theirs)


def test_fewer_than_five_seeds_are_not_trimmed_and_one_tells_nothing() -> None:
    values = [1.0, 2.0, 4.0, 9.0]
    assert trimmed(values) == Centre(fmean(values), pytest.approx(stdev(values) / 2))
    assert trimmed([1.0]) is None


def test_an_outlier_lets_a_miss_pass_by_the_mean_alone() -> None:
    found = both(COLLAB, 72.26, 1.10 / 5**0.5)
    assert found.mean.value - found.printed == pytest.approx(-4.44, abs=0.01)
    assert (found.by_mean, found.by_trimmed) == (True, False)
    worse = [value if value > 60 else -1000.0 for value in COLLAB]
    assert trimmed(worse) == trimmed(COLLAB)


def test_a_value_comes_back_or_does_not_or_the_errors_are_too_wide_to_tell() -> None:
    assert both(COLLAB, 72.26, 1.10 / 5**0.5).verdict == TOO_WIDE, "4.44 points below print"
    narrow = [78.0, 78.4, 78.8]  # two errors are 0.46
    assert [both(narrow, printed, None).verdict for printed in (78.8, 78.9)] == [CAME_BACK, MISSED]
    at = Centre(80.0, WIDEST / 2)
    assert Back("r", "A", at, at, 80.5, None).verdict == CAME_BACK, "the limit still tells"
    wider = Centre(80.0, WIDEST / 2 + 1e-6)
    verdicts = [Back("r", "A", wider, wider, value, None).verdict for value in (80.5, 82.0)]
    assert verdicts == [TOO_WIDE, MISSED]


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
    assert [one.row for one in backs(entries(resolved), table.name)] == ["ADNCE, mine", "new"]


@pytest.mark.parametrize(
    ("told", "by_mean", "by_trimmed"), [(True, 0.08, 0.10), (False, 0.23, 0.30)]
)
def test_how_often_an_equal_value_is_missed(told: bool, by_mean: float, by_trimmed: float) -> None:
    """Five normal seeds on both sides; without a printed deviation our error alone counts."""
    rng, n = np.random.default_rng(0), times(10_000)
    found = [
        both(ours, fmean(theirs), stdev(theirs) / 5**0.5 if told else None)
        for ours, theirs in rng.normal(size=(n, 2, 5)).tolist()
    ]
    noise = 3 * 0.5 / n**0.5
    assert np.mean([not one.by_mean for one in found]) == pytest.approx(by_mean, abs=0.01 + noise)
    missed = np.mean([not one.by_trimmed for one in found])
    assert missed == pytest.approx(by_trimmed, abs=0.01 + noise)


@pytest.mark.parametrize(
    ("ours", "seeds", "back"),
    [
        (Value(80.0, 1.0, 5, trimmed=Centre(81.0, 0.3)), 5, (False, True)),  # 1.26 is allowed
        (Value(81.0, 1.0, 5, trimmed=Centre(80.0, 0.3)), 5, (True, False)),
        (Value(81.0, 1.0, 5, trimmed=Centre(81.5, 0.3)), None, (False, True)),  # 0.89 is allowed
        (Value(80.0, None, 1), 5, None),
        (None, 5, None),
    ],
)
def test_a_value_came_back_within_two_standard_errors(
    ours: Value | None, seeds: int | None, back: tuple[bool, bool] | None
) -> None:
    found = Entry(Row(name="r"), "A", Value(82.0, 1.0), ours, True, seeds).back
    assert (found and (found.by_mean, found.by_trimmed)) == back


TABLE = small_table(
    decimals=2,
    protocol={"facts": [{"from": "paper (B)", "evaluation": {"seeds": 5}}]},
    columns={"COLLAB": {"dataset": "COLLAB"}, "DD": {"dataset": "DD"}},
    rows=[
        {"name": "quoted", "paper": {"COLLAB": [80.0, 1.0]}},
        {"name": "new", "loss": "adnce", "paper": {"COLLAB": [72.26, 1.10], "DD": [70.5]}},
    ],
)


def test_a_table_says_the_rule_the_counts_and_where_both_rules_disagree(tmp_path: Path) -> None:
    for column in TABLE.columns:
        work = TABLE.places[TABLE.rows[1].name, column].work
        for seed, value in enumerate(COLLAB):
            made(tmp_path, work, seed, metrics={"accuracy": value})
    text = render_table(resolve(TABLE, None, tmp_path), "md")
    assert "our error alone counts" in text, "of one value no deviation is printed"
    assert (
        "By mean and trimmed mean: new 0 and 1 of 2, 2 too wide to tell. They disagree on new, "
        "COLLAB: 72.26 is printed, our mean is 67.82 (too wide to tell)" in text
    )
    lines = list(csv.DictReader(io.StringIO(render_table(resolve(TABLE, None, tmp_path), "csv"))))
    told = [(r["ours_trimmed"], r["came_back"], r["came_back_trimmed"]) for r in lines]
    assert told == [("", "", "")] * 2 + [("70.5167", TOO_WIDE, "no"), ("70.5167", TOO_WIDE, "yes")]


@pytest.mark.parametrize("table", ["adnce-table10", "renyicl-table6"])
def test_the_findings_count_what_came_back(table: str) -> None:
    resolved = resolve(load_table(table), None, ROOT / "results")
    found = [one.back for line in entries(resolved) for one in line if one.back]
    finding = next(
        line
        for line in (ROOT / "results" / "README.md").read_text().splitlines()
        if "values of ADNCE's table come back" in line
    )
    for row in ("GraphCL", "ADNCE", "RényiCL"):
        if mine := [one.verdict for one in found if one.row == row]:
            wide = f" with {mine.count(TOO_WIDE)} too wide" if TOO_WIDE in mine else ""
            assert f"{row} {mine.count(CAME_BACK)} of {len(mine)}{wide}" in finding
