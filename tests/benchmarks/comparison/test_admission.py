"""The rule by which a suite admits data sets, on scores, on records, and from the command line."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.admission import (
    RULE_ROWS,
    Candidate,
    admission_table,
    candidates,
)
from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS as SEEDS_OF_ADMISSION
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps.plan import Plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.losses import UserError
from made_records import made

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
                work = table.experiment(row, column)
                made(results, work, seed, metrics={"accuracy": float(score)})


def test_records_decide(tmp_path: Path) -> None:
    path = sweep(tmp_path)
    record_all(path, tmp_path, "MUTAG")
    record_all(path, tmp_path, "DD", but="untrained")
    first, second = candidates(load_table(str(path)), SEEDS, tmp_path)
    assert first == Candidate("MUTAG", SEEDS, candidate().scores, "worse")
    assert second.judged == ("open", "untrained has 0 of 3 seeds")
    rows = list(csv.DictReader(admission_table([first, second], "csv").splitlines()))
    assert rows[0] == {
        "set": "MUTAG", "raw input": "71.00", "untrained": "61.00", "permuted positives": "66.00",
        "temperature 5": "74.00", "InfoNCE": "77.00", "pairs by class": "81.00",
        "cross entropy": "80.00", "gain": "+6.00", "paired std": "1.00",
        "anchor": "+4.00", "seeds": "3", "verdict": "admitted", "reason": "",
    }  # fmt: skip
    assert (rows[1]["untrained"], rows[1]["seeds"]) == ("", "0")
    text = admission_table([first, second], "md")
    assert "| MUTAG | 71.00 | 61.00 |" in text
    assert "by 3 points and by 2 paired standard deviations: the gain" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (CONTROLS, "", "give controls and infonce among its losses"),
        ("temperature 5, ", "", "name 'temperature 5' among its controls"),
        ("{infonce: {temperature: 0.2}}", "adnce", "give controls and infonce"),
        ("controls", "tune: {trials: 4}\ncontrols", "remove tune"),
    ],
)
def test_other_files_are_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    table = load_table(str(sweep(tmp_path, FILE.replace(old, new))))
    with pytest.raises(UserError, match=message):
        list(candidates(table, SEEDS, tmp_path))
    with pytest.raises(UserError, match="1 seed has no standard deviation"):
        list(candidates(table, SEEDS[:1], tmp_path))


def test_the_command_judges_from_records(bench, tmp_path: Path) -> None:
    path = sweep(tmp_path)
    record_all(path, tmp_path, "MUTAG")
    words = ["suite", "admit", str(path), "--seeds", "100-102", "--results", str(tmp_path)]
    code, out, _ = bench(*words, "--only", "dataset=MUTAG", "--format", "csv")
    assert code == 0
    assert [line.split(",")[-2] for line in out.splitlines()] == ["verdict", "admitted"]
    assert bench(*words, "--format", "latex")[0] == 2
    code, _, err = bench(*words, "--only", "row=untrained")
    assert (code, "every row is judged" in err) == (2, True)


def test_the_command_runs_what_is_missing_of_these_rows(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = sweep(tmp_path), []

    def run(plan: Plan, options: Options, jobs: int, *_: object) -> Iterator[tuple[str, bool]]:
        asked.append((plan.seeds, {place.row.control or "InfoNCE" for place in plan.places}, jobs))
        assert options.results == tmp_path
        record_all(path, tmp_path, "MUTAG")
        yield "18 cells are done", False

    monkeypatch.setattr("contrastbench.benchmarks.sweeps.sweep.run_plan", run)
    words = ["suite", "admit", str(path), "--seeds", "100-102", "--results", str(tmp_path)]
    code, out, err = bench(*words, "--run", "--jobs", "2", "--only", "column=MUTAG")
    assert (code, asked) == (0, [(list(SEEDS), set(RULE_ROWS), 2)])
    assert "18 cells" in err
    assert "| admitted |" in out
    assert bench(*words, "--only", "column=MUTAG")[1] == out, "it can be repeated"


def test_the_default_seeds_are_those_of_no_comparison(bench, tmp_path: Path) -> None:
    path = sweep(tmp_path)
    out = bench("suite", "admit", str(path), "--results", str(tmp_path))[1]
    assert out.count("| 0 | open | no records yet") == 2
    assert not set(parse_seeds(SEEDS_OF_ADMISSION)) & {*range(10), *Tune().seeds}


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_the_shipped_verdicts_follow_from_the_shipped_records(bench, path: Path) -> None:
    code, out, err = bench("suite", "admit", str(path), "--results", str(RESULTS))
    assert (code, out) == (0, path.with_suffix(".md").read_text()), err


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", " =1", "＝1"])
def test_a_name_is_no_formula_in_a_csv(name: str) -> None:
    one = Candidate(name, SEEDS, candidate().scores)
    (row,) = csv.DictReader(admission_table([one], "csv").splitlines())
    assert next(iter(row.values())) == f"'{name}"
