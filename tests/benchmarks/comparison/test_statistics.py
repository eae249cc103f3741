"""Statistics against plain loops, published examples, scipy and statsmodels."""

import gc
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy import special, stats
from statsmodels.stats.multitest import multipletests

from contrastbench.benchmarks.comparison.compare import compare_cell, decide
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    compiled_functions,
    corrected_t,
    critical,
    mean_std,
    noncentrality,
)
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.searches import Choice
from contrastbench.benchmarks.tables.table import Selection
from counts import times
from made_records import small_table


def test_corrected_t_is_the_formula() -> None:
    d = [1.2, -0.4, 0.9, 2.0, 0.3, 0.8]
    mean = sum(d) / 6
    variance = sum((x - mean) ** 2 for x in d) / 5
    t = mean / math.sqrt((1 / 6 + 0.5) * variance)
    steps = np.linspace(-abs(t), abs(t), 200_001)
    density = math.gamma(3) / (math.sqrt(5 * math.pi) * math.gamma(2.5)) * (1 + steps**2 / 5) ** -3
    assert corrected_t(d, 0.5).p == pytest.approx(1 - np.trapezoid(density, steps), abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 30, 10**6])
@pytest.mark.parametrize("alpha", [1e-4, 0.9999])
def test_no_level_is_too_strict_or_too_lax_for_what_can_be_detected(n: int, alpha: float) -> None:
    one_sided = critical(n - 1, alpha)  # scipy.stats integrates where special inverts
    chance = stats.nct.sf(one_sided, n - 1, noncentrality(n - 1, alpha))
    assert chance == pytest.approx(0.8, abs=1e-3)


def paired(spread: float | None, n: int, ratio: float) -> Comparison:
    return Comparison("r", "A", "graph", difference=1.0, spread=spread, n=n, ratio=ratio)


def test_overlap_raises_what_can_be_detected() -> None:
    plain, overlapping = (paired(1.0, 50, ratio).detectable for ratio in (0.0, 1 / 9))
    assert overlapping / plain == pytest.approx(math.sqrt((1 / 50 + 1 / 9) * 50))
    assert paired(None, 1, 0.0).detectable is None


def test_scipys_functions_come_alone_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "scipy.special")
        assert compiled_functions().stdtr(3, -1.5) == pytest.approx(stats.t.cdf(-1.5, 3))
        assert "scipy.special" not in sys.modules, "whoever imports it gets the whole"
    monkeypatch.setitem(sys.modules, "scipy.special._ufuncs", None)
    assert compiled_functions() is special, "as of a scipy that keeps them elsewhere"


def test_a_single_value_has_no_deviation() -> None:
    assert mean_std([3.0]) == (3.0, None)


@pytest.mark.parametrize("ratio", [0.0, 1 / 9, 0.5])
def test_an_interval_ends_where_its_test_begins_to_reject(ratio: float) -> None:
    """Overlapping training parts widen the interval as they widen the test."""
    spread = np.array([-1.0, 0.5, 0.5, 2.0, -2.0])
    ends = paired(spread.std(ddof=1), len(spread), ratio).half_width
    found = corrected_t(list(spread + ends), ratio)
    assert found.p == pytest.approx(ALPHA, rel=1e-3)


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
