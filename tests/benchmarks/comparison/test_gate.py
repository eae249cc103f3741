"""The gate of a standing comparison: on made-up comparisons and records, and on those that ship."""

import runpy
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from contrastbench.benchmarks.comparison.budget import curves
from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.comparison.statistics import corrected_t
from contrastbench.benchmarks.report.contents import view_of
from contrastbench.benchmarks.report.table_pages import texts
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from made_records import made
from suites import REQUIRED_SHARE, Condition, conditions, gate_report, judged

RESULTS = Path(__file__).parents[3] / "results"
EIGHT = defaultdict[str, range](lambda: range(8))
STANDING = [name for name in catalogue.table_names() if name.startswith("standard-")]
SCRIPT = RESULTS.parent / "examples" / "recompute_standard.py"


def is_open(found: Iterable[Condition]) -> bool:
    return all(one.passes for one in found)


def one(control: str, column: str, differences: list[float]) -> Comparison:
    """The comparison of a control with InfoNCE from differences by seed."""
    seeds = tuple(range(len(differences)))
    mean, t = float(np.mean(differences)), corrected_t(differences, 0.0)
    return Comparison(control, column, "graph", seeds=seeds, difference=mean, t=t, control=control)


def test_shares_are_counted_over_the_sets_that_have_the_control() -> None:
    nine = [one("untrained", f"set {k}", [-1.0, -1.1] * 4) for k in range(9)]
    last = one("untrained", "set 9", [1.1, -1.0] * 4)

    def untrained(found: list[Comparison], sets: int) -> Condition:
        names = {"untrained": [f"set {k}" for k in range(sets)]}
        return judged(found, names, EIGHT)[list(REQUIRED_SHARE).index("untrained")]

    assert untrained([*nine, last], 10).passes
    assert not untrained([*nine[:8], last], 10).passes, "a set without records does not hold"
    assert untrained(nine, 9).holds == 9
    assert not untrained([], 0).passes


def test_a_control_that_is_better_or_failed_is_named() -> None:
    better = one("raw input", "A", [1.0, 1.1] * 4)
    lost = {"verdict": "failed", "failure": "diverged (8 of 8)"}
    failed = Comparison("raw input", "B", "graph", control="raw input", **lost)
    found = judged([better, failed], {"raw input": ["A", "B", "C"]}, EIGHT)[0]
    assert [words for _, words in found.sets.values()] == [
        "+1.05, not below",
        "diverged (8 of 8)",
        "no shared seeds",
    ]


@pytest.mark.usefixtures("moment")
@pytest.mark.parametrize("name", STANDING)
def test_the_gate_of_a_suite_is_open_and_each_loss_of_a_released_one_has_run(name: str) -> None:
    found = resolve(load_table(name), None, RESULTS)
    gate = conditions(found)
    assert is_open(gate), [one for one in gate if not one.passes]
    assert not compare(found).wrong, "infonce again too, where it is asked for"
    lacking = [
        (cell.row.name, cell.column)
        for line in found.lines
        for cell in line.cells.values()
        if not {*found.table.seeds_of(cell.column)} <= {*cell.records, *cell.diverged}
    ]
    assert not lacking or found.table.draft


SUITE = """\
seeds: 0-2
tune: {trials: 8}
controls: [raw input, untrained, permuted positives, infonce again]
quick: {datasets: [wine], seeds: 0-2}
domains:
  tabular: {datasets: [wine, iris, digits-table, letter]}
  image: {datasets: [digits, CIFAR-10, Omniglot]}
losses: [infonce, adnce, decoupled, hcl]
"""
SHIFTS = {"infonce": 80.0, "adnce": 83.0, "decoupled": 80.2, "hcl": 78.0, "none": 60.0}


def test_a_script_of_pandas_and_scipy_finds_the_same(tmp_path: Path) -> None:
    """On made records of a whole search: points, finalists, fresh seeds, and a second search."""
    path, noise = tmp_path / "mine.yaml", np.random.default_rng(0)
    path.write_text(SUITE)
    while tasks := [
        task for task in make_plan(str(path), results=tmp_path).tasks() if task.state == "missing"
    ]:
        for task in tasks:
            score = SHIFTS[task.experiment.loss.name] + 2 * float(noise.normal())
            score -= 20 * bool(task.experiment.recipe.get("permuted"))
            about = {"metrics": {"accuracy": score}, "details": {"validation": score}}
            about["data_hash"] = sha256(task.experiment.dataset.encode()).hexdigest()
            made(tmp_path, task.experiment, task.seed, **about)
    resolved = resolve(load_table(str(path)), None, tmp_path)
    (tmp_path / "mine-cells.csv").write_text(texts(view_of(resolved))["-cells.csv"])
    found = runpy.run_path(str(SCRIPT))["compare"](tmp_path, "mine")
    verdicts = compare(resolved)
    assert {row.effect.row for row in verdicts.rows} == {"adnce", "decoupled", "hcl"}
    for row in (*verdicts.rows, *verdicts.controls):
        own = found.loc[row.effect.row]
        assert own.effect == pytest.approx(row.over.mean, abs=1e-6)
        assert own.half == pytest.approx(row.over.half, abs=1e-6)
        if not row.must:
            assert own.p == pytest.approx(row.over.holm, abs=1e-9)
            assert own.verdict == row.over.verdict
    names = [one for one in verdicts.rows if one.effect.row == "adnce"]
    assert [*names[0].curve] == [1, 4, 8], "the best of so many of eight points"
    scores = curve_by_hand(tmp_path, resolved, "adnce", 4)
    base = curve_by_hand(tmp_path, resolved, "infonce", 4)
    assert scores.keys() == base.keys() == {*resolved.table.columns}


def curve_by_hand(results: Path, resolved: Resolved, row: str, count: int) -> dict[str, float]:
    """The test score of the best of the first points by validation with seed 1000."""
    found = {}
    for column in resolved.table.columns:
        place = resolved.table.places[row, column]
        trials = [place.experiment(one) for one in place.search.settings[:count]]  # type: ignore[attr-defined]
        runs = [trial.ok_by_seed(results)[1000] for trial in trials]
        best = max(runs, key=lambda run: run["details"]["validation"])
        found[column] = best["metrics"]["accuracy"]
    known = curves(resolved)
    assert {column: known[row, column][count] for column in found} == found
    return found


FILE = """\
seeds: 0-2
controls: [raw input, untrained, permuted positives, temperature 5, half the epochs]
domains: {graph: {datasets: [MUTAG, DD]}}
losses: [{infonce: {temperature: 0.2}}, adnce]
"""


def recorded(folder: Path, **scores: float) -> Path:
    """Make records of a suite of two sets; the scores are those of rows by name."""
    path = folder / "mine.yaml"
    path.write_text(FILE)
    table = load_table(str(path))
    for row in table.rows:
        score = scores.get(row.name.replace(" ", "_"), 60.0)
        for column in table.columns:
            for seed in table.seeds:
                value = score + (0.1 * seed if row.control else 0.2 * seed)
                made(folder, table.places[row.name, column].work, seed, metrics={"accuracy": value})
    return path


def test_records_with_known_effects_open_the_gate(tmp_path: Path) -> None:
    known = {"infonce (temperature=0.2)".replace(" ", "_"): 80.0, "half_the_epochs": 79.0}
    found = conditions(resolve(load_table(str(recorded(tmp_path, **known))), None, tmp_path))
    assert is_open(found)
    report = gate_report(found)
    assert "| untrained | 90 % | 2 of 2 | yes |" in report
    assert "| MUTAG | -20.10, below | -20.10, below |" in report
