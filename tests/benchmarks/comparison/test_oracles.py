"""The statistics of random tables with holes, failures and single seeds, against known packages.

Packages: scipy and statsmodels.
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from contrastbench.benchmarks.comparison.compare import compare_cell, decide
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.searches import Choice
from contrastbench.benchmarks.tables.table import Selection
from counts import times
from made_records import small_table

ROWS = ("base", "a", "b", "c", "d")
TABLE = small_table(
    name="drawn",
    domain="tabular",
    columns={f"C{k}": {"dataset": "churn"} for k in range(6)},
    rows=[
        {"name": name, "loss": "infonce", "params": {"temperature": 0.1 + place / 10}}
        for place, name in enumerate(ROWS)
    ],
)


@pytest.fixture(autouse=True)
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statsmodels collects garbage at each correction, which takes longer than all tests here."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


def drawn(seed: int) -> dict[str, dict[str, dict[int, float]]]:
    """Draw scores by row, column and seed: with ties, holes, failed cells and single seeds."""
    r = Random(seed)
    digits, most = r.randint(0, 3), r.choice([1, 2, 5, 8])
    return {
        row: {
            column: {
                k: round(r.gauss(80, 1), digits)
                for k in range(most)
                if r.random() > 0.1 and not (column == "C5" and row == "d")
            }
            for column in TABLE.columns
            if r.random() > 0.1
        }
        for row in ROWS
    }


def line(row: str, column: str, scores: dict[int, float]) -> Line:
    """Make the line of a row with the records of one place; without a score it has failed."""
    found = next(one for one in TABLE.rows if one.name == row)
    about = {"samples": {"train": 4, "test": 2}, "test_part": "fixed"}
    records = {
        seed: {
            "seed": seed,
            "key": row,
            "main": "accuracy",
            "metrics": {"accuracy": score},
            "data_hash": "0",
            "domain": "tabular",
            "dataset": "churn",
            "details": about,
            "recipe": {},
        }
        for seed, score in scores.items()
    }
    failed = {} if scores else {"0": {0: {"status": "diverged"}}}
    ok = {"0": records} if records else {}
    place = TABLE.places[row, column]
    choice, work = Choice([place.setting]), [place.work]
    cell = ResolvedCell(place, found, column, "", choice, work, ok=ok, failed=failed)
    return Line(found, row, found.control, {column: cell})


def pairs(scores: dict[str, dict[str, dict[int, float]]]) -> Iterator[tuple[str, str]]:
    """Yield the places that both the row and the baseline have."""
    for row in ROWS[1:]:
        for column in TABLE.columns:
            if column in scores[row] and column in scores["base"]:
                yield row, column


def test_paired_tests_and_holms_p_are_scipys_and_statsmodels() -> None:
    tested = 0
    for seed in range(times(500)):
        scores = drawn(seed)
        places = list(pairs(scores))
        made = [
            compare_cell(
                Resolved(TABLE, Selection.PAPER, Path(), []),
                line("base", column, scores["base"][column]),
                line(row, column, scores[row][column]),
                column,
            )
            for row, column in places
        ]
        expected = []
        for (row, column), found in zip(places, made, strict=True):
            ours, theirs = scores[row][column], scores["base"][column]
            shared = sorted(ours.keys() & theirs.keys())
            assert found.seeds == tuple(shared)
            assert found.unpaired == len(ours.keys() ^ theirs.keys())
            a, b = ([one[k] for k in shared] for one in (ours, theirs))
            d = np.round(np.subtract(a, b), 9)
            if len(d) < 2 or (np.ptp(d) == 0 and d.any()):  # one seed, or no spread
                assert found.t.p is None
                continue
            t = stats.ttest_rel(a, b).pvalue if d.any() else 1.0
            assert found.t.p == pytest.approx(t, abs=1e-9), (a, b)
            expected.append(found.t.p)
        if expected:
            tested += 1
            adjusted = [one.holm for one in decide(made) if one.holm is not None]
            assert adjusted == pytest.approx(multipletests(expected, method="holm")[1])
    assert tested >= times(300)
