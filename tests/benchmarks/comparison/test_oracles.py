"""The statistics of random tables with holes, failures and single seeds, against known packages.

Packages: scipy, statsmodels and scikit-posthocs.
"""

import gc
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from scipy import stats
from statsmodels.stats.multitest import multipletests

from contrastbench.benchmarks.comparison.compare import compare_cell, decide
from contrastbench.benchmarks.comparison.ranks import ranks
from contrastbench.benchmarks.comparison.statistics import holm, rank, wilcoxon
from contrastbench.benchmarks.tables.entries import Entry, Value
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.searches import Choice
from contrastbench.benchmarks.tables.table import Selection, Table
from counts import times

ROWS = ("base", "a", "b", "c", "d")
TABLE = Table(
    name="drawn",
    title="t",
    source="s",
    decimals=1,
    domain="tabular",
    metric="accuracy",
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
    return Line(found, {column: ResolvedCell(place, choice, work, ok=ok, failed=failed)}, row)


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
            assert found.wilcoxon.p == pytest.approx(signed_rank(d), abs=1e-9), d
            expected.append(found.t.p)
        if expected:
            tested += 1
            adjusted = [one.holm for one in decide(made, "t", 0.05, 0) if one.holm is not None]
            assert adjusted == pytest.approx(multipletests(expected, method="holm")[1])
    assert tested >= times(300)


def signed_rank(d: np.ndarray) -> float:
    """Return scipy's p of Wilcoxon's test by all signs, zeros split between both.

    A split zero adds half of its rank to either side, so it does not move the difference of sums.
    """
    ranks_ = stats.rankdata(np.abs(d))

    def statistic(values: np.ndarray, axis: int) -> np.ndarray:
        return np.abs((np.sign(values) * ranks_).sum(axis=axis))

    flips = stats.permutation_test(
        (d,),
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    return float(flips.pvalue)


def test_many_pairs_are_scipys_split_of_zeros() -> None:
    for seed in range(times(500)):
        rng = np.random.default_rng(seed)
        d = np.round(rng.normal(0.2, 1, int(rng.integers(14, 40))), int(rng.integers(0, 3)))
        expected = stats.wilcoxon(d, zero_method="zsplit").pvalue
        assert wilcoxon(d.tolist()).p == pytest.approx(expected)


def test_ranks_and_friedmans_test_of_tables_with_holes_are_scipys() -> None:
    ranked = 0
    for seed in range(times(500)):
        scores = drawn(seed)
        lines = [[entry(row, column, scores) for column in TABLE.columns] for row in ROWS]
        found = ranks(TABLE, lines)
        if found.ranking is None:
            continue
        ranked += 1
        full = [[mean(scores, row, column) for row in found.rows] for column in found.columns]
        expected = stats.rankdata(-np.round(full, 9), axis=1)
        assert found.ranking.ranks == pytest.approx(expected.mean(axis=0).tolist())
        if np.ptp(expected):
            friedman = stats.friedmanchisquare(*(-expected).T)
            assert found.ranking.chi2 == pytest.approx(friedman.statistic), full
            assert found.ranking.p == pytest.approx(friedman.pvalue), full
    assert ranked >= times(200)


def mean(scores: dict[str, dict[str, dict[int, float]]], row: str, column: str) -> float:
    """Return a place's mean; a failed one lies below all."""
    values = scores[row][column].values()
    return sum(values) / len(values) if values else -math.inf


def entry(row: str, column: str, scores: dict[str, dict[str, dict[int, float]]]) -> Entry:
    """Make a table's place: a mean, a failure, or nothing."""
    found = Line(next(one for one in TABLE.rows if one.name == row), {}, row)
    if column not in scores[row]:
        return Entry(found, column, None, None, True, None)
    value = mean(scores, row, column)
    ours = Value(value, n=1) if math.isfinite(value) else None
    return Entry(found, column, None, ours, True, None, failure="" if ours else "diverged")


def test_nemenyis_test_is_scikit_posthocs() -> None:
    """Two methods differ where their ranks are further apart than the critical difference."""
    compared = 0
    for seed in range(times(500)):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(4, 15)), int(rng.integers(3, 8))
        scores = np.round(rng.normal(size=(n, k)) + rng.normal(size=k), int(rng.integers(0, 3)))
        found = rank(scores.tolist())
        theirs = scikit_posthocs.posthoc_nemenyi_friedman(pd.DataFrame(scores)).to_numpy()
        apart = np.abs(np.subtract.outer(found.ranks, found.ranks))
        sure = np.abs(apart - found.critical_difference) > 1e-4
        np.fill_diagonal(sure, False)
        compared += int(sure.sum())
        assert ((apart > found.critical_difference) == (theirs < 0.05))[sure].all(), scores
    assert compared > times(500)


def test_holm_is_statsmodels_with_ties() -> None:
    for seed in range(times(500)):
        r = Random(seed)
        ps = [round(r.random() ** 3, r.randint(1, 4)) for _ in range(r.randint(1, 30))]
        assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())
