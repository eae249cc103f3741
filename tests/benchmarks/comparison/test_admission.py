"""The rule by which a suite admits data sets, on scores and on records."""

from pathlib import Path
from statistics import stdev

import pytest
from scipy import stats

from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.schema import Tune
from made_records import made
from suites import Candidate, admission_table, candidates, is_above, main

RESULTS = Path(__file__).parents[3] / "results"
CANDIDATES = [
    path
    for path in sorted((RESULTS / "candidates").glob("*.yaml"))
    if path.with_suffix(".md").exists()  # others wait for their records
]
SEEDS = (100, 101, 102, 103, 104)
FILE = """\
seeds: 100-104
controls: [raw input, untrained, temperature 5, cross entropy]
domains: {graph: {datasets: [MUTAG, DD]}}
losses: [{infonce: {temperature: 0.1}}, {infonce: {temperature: 0.2}}]
"""
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


def test_records_decide(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    table = load_table(str(path))
    for column, but in (("MUTAG", ""), ("DD", "untrained")):
        for row in table.rows:
            second = "second" if row.params == {"temperature": 0.2} else "first"
            scores = GOOD.get(row.control or second, [90.0] * 5)
            for seed, score in zip(SEEDS, scores, strict=True):
                if row.control != but or not but:
                    work = table.places[row.name, column].work
                    made(tmp_path, work, seed, metrics={"accuracy": float(score)})
    first, second = candidates(table, SEEDS, tmp_path)
    assert first.judged == ("admitted", "")
    assert second.judged == ("open", "untrained has 0 of 5 seeds")
    text = admission_table([first, second])
    assert "| MUTAG | 70.48 | 60.80 | 74.54 |  | 80.52 | 78.52 |  | 90.00 | +10.04 | " in text


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
