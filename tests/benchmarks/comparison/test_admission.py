"""Which data sets a suite may have, and the gate that its controls open."""

import runpy
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import stdev

import numpy as np
import pytest
from scipy import stats

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.comparison.effects import curves
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.comparison.statistics import corrected_t
from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.report.contents import view_of
from contrastbench.benchmarks.report.table_pages import texts
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Line, Resolved, resolve
from contrastbench.benchmarks.tables.schema import Tune
from made_records import made
from suites import (
    REQUIRED_SHARE,
    Candidate,
    Condition,
    conditions,
    gate_report,
    is_above,
    judged,
    main,
)

RESULTS = Path(__file__).parents[3] / "results"
CANDIDATES = [
    path
    for path in sorted((RESULTS / "candidates").glob("*.yaml"))
    if path.with_suffix(".md").exists()  # others wait for their records
]
SEEDS = (100, 101, 102, 103, 104)
GOOD = {
    "raw input": [70, 70.4, 70.8, 71, 70.2],
    "untrained": [60, 61, 62, 61, 60],
    "temperature 5": [74, 74.6, 75, 74.2, 74.9],
    "first": [80, 80.5, 81, 80.2, 80.9],
    "second": [78, 78.7, 79, 78.1, 78.8],
}


def candidate(**rows: list[float] | None) -> Candidate:
    """A set that is admitted, with other scores in some rows; None: it has no such row."""
    changed = {name.replace("_", " "): values for name, values in rows.items()}
    given = {name: values for name, values in {**GOOD, **changed}.items() if values is not None}
    by_seed = {name: dict(zip(SEEDS, v, strict=False)) for name, v in given.items()}
    settings = [by_seed.pop(name) for name in ("first", "second") if name in by_seed]
    return Candidate("a set", SEEDS, by_seed, settings)


def test_a_set_that_resolves_is_admitted_whatever_labels_add() -> None:
    one = candidate(cross_entropy=[80, 80, 80, 80, 80])
    assert one.judged == ("admitted", "")
    assert one.gains == pytest.approx([10, 10.1, 10.2, 9.2, 10.7]), "over the better floor"
    differences = [a - b for a, b in zip(GOOD["first"], GOOD["second"], strict=True)]
    assert one.resolution == pytest.approx(100 * stdev(differences) / 10.04)


def test_infonce_is_the_better_setting() -> None:
    swapped = candidate(first=GOOD["second"], second=GOOD["first"])
    assert swapped.gains == candidate().gains


@pytest.mark.parametrize(
    ("rows", "verdict", "reason"),
    [
        ({"second": [74, 80, 79, 76, 81]}, "refused", "two settings differ by"),
        ({"first": [71, 69, 72, 70, 73], "second": [70, 69, 71, 70, 72]}, "refused", "not surely"),
        ({"temperature_5": [80, 80.5, 81, 80.2, 80]}, "refused", "neither a bad temperature nor"),
        (
            {"temperature_5": [80, 80.5, 81, 80.2, 80], "permuted_positives": [70, 71, 70, 71, 70]},
            "admitted",
            "",
        ),
        ({"raw_input": None}, "admitted", ""),
        ({"untrained": [60]}, "open", "untrained has 1 of 5 seeds"),
        ({"second": None}, "open", "one setting of InfoNCE alone"),
        ({"first": []}, "open", "setting 1 has 0 of 5 seeds"),
    ],
)
def test_the_rule(rows: dict[str, list[float] | None], verdict: str, reason: str) -> None:
    found, why = candidate(**rows).judged
    assert found == verdict
    assert reason in why
    assert bool(why) == bool(reason)


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0, 2.5, 1.5], [0.1, 2.0, -1.0, 0.5, 0.2]])
def test_above_is_the_one_sided_t_test_of_scipy(values: list[float]) -> None:
    assert is_above(values) == (stats.ttest_1samp(values, 0, alternative="greater").pvalue < 0.01)


def test_one_seed_shows_nothing_and_equal_gains_are_sure() -> None:
    assert not is_above([5.0])
    assert is_above([5.0, 5.0])
    assert not is_above([-5.0, -5.0])


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_the_shipped_verdicts_follow_from_the_shipped_records(
    capsys: pytest.CaptureFixture[str], path: Path
) -> None:
    assert main("admit", str(path)) == 0
    assert capsys.readouterr().out == path.with_suffix(".md").read_text()


def test_each_set_of_the_next_suite_is_admitted_with_its_very_recipe() -> None:
    table, admitted = load_table("standard-4"), {}
    for path in CANDIDATES:
        lines = path.with_suffix(".md").read_text().splitlines()
        names = {line.split(" | ")[0][2:] for line in lines if line.endswith("| admitted |  |")}
        columns = load_table(str(path)).columns.items()
        admitted |= {name: column.recipe for name, column in columns if name in names}
    recipes = {name: column.recipe for name, column in table.columns.items()}
    assert recipes.items() <= admitted.items()


def test_the_seeds_are_those_of_no_comparison() -> None:
    assert not {*parse_seeds(ADMISSION_SEEDS)} & {*range(10), *Tune().seeds}


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
def test_the_gate_is_open_and_no_loss_of_a_released_suite_has_run_in_part(name: str) -> None:
    found = resolve(load_table(name), None, RESULTS)
    gate = conditions(found)
    assert is_open(gate), [one for one in gate if not one.passes]
    assert "| untrained | 90 % | " in gate_report(gate)
    assert not compare(found).wrong, "infonce again too, where it is asked for"
    for line in found.lines:
        own = [cell for cell in line.cells.values() if not cell.same_as]
        run = [{*found.table.seeds_of(c.column)} <= {*c.records, *c.diverged} for c in own]
        begun = any(cell.records for cell in own) or line.row.control or line.name == "infonce"
        assert all(run) or not begun or found.table.draft, (line.name, run)


SUITE = """\
seeds: 0-2
tune: {trials: 8}
controls: [raw input, untrained, permuted positives, infonce again]
quick: {datasets: [wine], seeds: 0-2}
domains:
  tabular: {datasets: [wine, iris, digits-table, letter]}
  image: {datasets: [digits, CIFAR-10, Omniglot, Devanagari]}
losses: [infonce, adnce, decoupled, hcl, debiased]
"""
SHIFTS = {"infonce": 80.0, "adnce": 83.0, "decoupled": 80.2, "hcl": 78.0, "none": 60.0}


def test_a_script_of_pandas_and_scipy_finds_the_same(tmp_path: Path) -> None:
    """On made records of a whole search: points, finalists, fresh seeds, and a second search."""
    path, noise = tmp_path / "mine.yaml", np.random.default_rng(0)
    path.write_text(SUITE)
    while tasks := [
        task
        for task in make_plan(str(path), results=tmp_path).tasks()
        if task.state == "missing" and task.experiment.loss.name != "debiased"
    ]:
        for task in tasks:
            score = SHIFTS[task.experiment.loss.name] + 2 * float(noise.normal())
            score -= 20 * bool(task.experiment.recipe.get("permuted"))
            about = {"metrics": {"accuracy": score}, "details": {"validation": score}}
            about["data_hash"] = sha256(task.experiment.dataset.encode()).hexdigest()
            made(tmp_path, task.experiment, task.seed, **about)
    resolved = resolve(load_table(str(path)), None, tmp_path)
    (tmp_path / "mine-cells.csv").write_text(texts(view_of(resolved))["-cells.csv"])
    found = runpy.run_path(str(SCRIPT))["compare"](tmp_path, "mine", 4)  # one has yet to run
    verdicts = compare(resolved)
    assert {row.effect.row for row in verdicts.rows} == {"adnce", "decoupled", "hcl"}
    for row in (*verdicts.rows, *verdicts.controls):
        own = found.loc[row.effect.row]
        assert own.effect == pytest.approx(row.over.mean, abs=1e-6)
        assert own.half == pytest.approx(row.over.half, abs=1e-6)
        assert own.verdict == row.over.verdict
        p = own[["p", "p_equal"]].astype(float)  # without a correction for controls
        shown = np.array([row.over.holm, row.over.holm_equal], float)
        assert p.to_numpy() == pytest.approx(shown, abs=1e-9, nan_ok=True)
    names = [one for one in verdicts.rows if one.effect.row == "adnce"]
    assert [*names[0].curve] == [1, 4, 8], "the best of so many of eight points"
    scores = curve_by_hand(tmp_path, resolved, "adnce", 4)
    base = curve_by_hand(tmp_path, resolved, "infonce", 4)
    assert scores.keys() == base.keys() == {*resolved.table.columns}
    kept = {"raw input": "tabular", "untrained": "tabular", "infonce again": "image"}
    apart = [without(line, kept.get(line.name, "")) for line in resolved.lines]
    controls = [one.effect.row for one in compare(replace(resolved, lines=apart)).controls]
    assert "untrained" in controls
    assert "infonce again" not in controls, "no gain is known where it has run"


def without(line: Line, domain: str) -> Line:
    """The line with the results of one domain, or of all."""
    cells = {name: cell for name, cell in line.cells.items() if cell.place.setup.domain == domain}
    return replace(line, cells=cells) if domain else line


def curve_by_hand(results: Path, resolved: Resolved, row: str, count: int) -> dict[str, float]:
    """The test score of the best of the first points by validation with seed 1000."""
    found = {}
    for column in resolved.table.columns:
        place = resolved.table.places[row, column]
        trials = [place.experiment(one) for one in place.search.space.settings[:count]]  # type: ignore[attr-defined]
        runs = [trial.ok_by_seed(results)[1000] for trial in trials]
        best = max(runs, key=lambda run: run["details"]["validation"])
        found[column] = best["metrics"]["accuracy"]
    known = curves(resolved)
    assert {column: known[row, column][count] for column in found} == found
    return found
