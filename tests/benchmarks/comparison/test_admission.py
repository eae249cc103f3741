"""The rule by which a suite admits data sets, on scores and on records."""

from dataclasses import replace
from pathlib import Path

import pytest

from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.schema import Tune
from made_records import made
from suites import RULE_ROWS, Candidate, admission_table, candidates, main

RESULTS = Path(__file__).parents[3] / "results"
CANDIDATES = sorted((RESULTS / "candidates").glob("*.yaml"))
SEEDS = (100, 101, 102)
CONTROLS = (
    "controls: [raw input, untrained, permuted positives, temperature 5, pairs by class, "
    "cross entropy]\n"
)
FILE = f"""\
seeds: 100-102
{CONTROLS}domains: {{graph: {{datasets: [MUTAG, DD]}}}}
losses: [{{infonce: {{temperature: 0.2}}}}]
"""
GOOD = {
    "raw input": [70, 71, 72],
    "untrained": [60, 61, 62],
    "permuted positives": [65, 66, 67],
    "temperature 5": [73, 74, 75],
    "InfoNCE": [75, 77, 79],
    "pairs by class": [80, 81, 82],
    "cross entropy": [79, 80, 81],
}


def candidate(bad_verdict: str = "worse", **rows: list[float] | None) -> Candidate:
    """A set that is admitted, with other scores in some rows; None: it has no such row."""
    names = {name.replace(" ", "_"): name for name in RULE_ROWS}
    scores = {**GOOD, **{names[key]: values for key, values in rows.items()}}
    given = {name: values for name, values in scores.items() if values is not None}
    by_seed = {name: dict(zip(SEEDS, v, strict=False)) for name, v in given.items()}
    return Candidate("a set", SEEDS, by_seed, bad_verdict)


def test_gain_is_over_the_better_floor_and_the_anchor_is_the_better_one() -> None:
    one = candidate()
    assert (one.gains, one.rooms) == ([5, 6, 7], [5, 4, 3])
    assert one.judged == ("admitted", "")
    assert candidate(untrained=[71, 71, 73]).gains == [4, 6, 6]


@pytest.mark.parametrize(
    ("rows", "verdict", "reason"),
    [
        ({"InfoNCE": [72.9, 73.9, 74.9]}, "refused", "gains +2.90, less than 3 points"),
        ({"InfoNCE": [73, 74, 75], "temperature_5": [72, 73, 74]}, "admitted", ""),
        ({"temperature_5": []}, "open", "temperature 5 has 0 of 3 seeds"),
        ({"temperature_5": [], "untrained": [73, 75, 77]}, "refused", "gains +2.00, less than 3"),
        ({"InfoNCE": [71, 76, 78]}, "refused", "less than 2 standard deviations of 2.65"),
        ({"pairs_by_class": [76, 78, 80]}, "admitted", ""),
        (
            {"pairs_by_class": [76, 78, 80], "cross_entropy": [77, 79, 81]},
            "refused",
            "classes add +2.00 to it, less than 3 points",
        ),
        (
            {"pairs_by_class": None, "cross_entropy": None},
            "admitted",
            "no classes, so no upper anchor is asked for",
        ),
        ({"raw_input": None}, "admitted", ""),
        ({"InfoNCE": [75, 77]}, "open", "InfoNCE has 2 of 3 seeds"),
        ({"cross_entropy": []}, "open", "cross entropy has 0 of 3 seeds"),
        ({"InfoNCE": []}, "open", "InfoNCE has 0 of 3 seeds"),
    ],
)
def test_the_rule(rows: dict[str, list[float] | None], verdict: str, reason: str) -> None:
    found, why = candidate(**rows).judged
    assert found == verdict
    assert reason in why
    assert bool(why) == bool(reason)


def test_a_set_that_does_not_show_the_bad_temperature_is_refused() -> None:
    assert candidate("not shown").judged == (
        "refused",
        "temperature 5 is -3.00 from it, and not shown to be worse",
    )


def test_both_reasons_are_given() -> None:
    _, why = candidate(InfoNCE=[70, 71, 75]).judged
    assert why.count("training gains") == 2


def sweep(folder: Path, text: str = FILE) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def record_all(path: Path, results: Path, column: str, but: str = "no row") -> None:
    """Make a record of each control and of InfoNCE, as the scores of GOOD are."""
    table = load_table(str(path))
    for row in table.rows:
        scores = GOOD.get(row.control or "InfoNCE", [])
        for seed, score in zip(SEEDS, scores, strict=False):
            if row.control != but:
                work = table.places[row.name, column].work
                made(results, work, seed, metrics={"accuracy": float(score)})


def test_records_decide(tmp_path: Path) -> None:
    path = sweep(tmp_path)
    record_all(path, tmp_path, "MUTAG")
    record_all(path, tmp_path, "DD", but="untrained")
    first, second = candidates(load_table(str(path)), SEEDS, tmp_path)
    assert first == Candidate("MUTAG", SEEDS, candidate().scores, "worse", first.equal)
    assert first.equal > 10
    assert replace(first, equal=4.0).gain_without_twins == "+2.08"
    assert second.judged == ("open", "untrained has 0 of 3 seeds")
    text = admission_table([first, second])
    assert "| MUTAG | 71.00 | 61.00 |" in text
    assert "| 80.00 | +6.00 | none is sure | 1.00 |" in text


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_the_shipped_verdicts_follow_from_the_shipped_records(
    capsys: pytest.CaptureFixture[str], path: Path
) -> None:
    assert main("admit", str(path)) == 0
    assert capsys.readouterr().out == path.with_suffix(".md").read_text()


def test_the_seeds_are_those_of_no_comparison() -> None:
    assert not {*parse_seeds(ADMISSION_SEEDS)} & {*range(10), *Tune().seeds}
