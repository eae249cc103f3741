"""What a comparison must not count: other data, survivors, copies, controls, one set six times."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contrastbench.benchmarks.comparison import Verdict
from contrastbench.benchmarks.comparison.compare import (
    Verdicts,
    baseline_row,
    compare,
    compare_rows,
)
from contrastbench.benchmarks.comparison.over_sets import Judged
from contrastbench.benchmarks.report.comparison import (
    compared,
    comparison_rows,
    render_comparison,
)
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.schema import QuickPart, Tune
from made_records import made
from suites import conditions

GRAPHS = ("MUTAG", "DD", "AIDS", "NCI1")
TABLES = ("wine", "iris")
FILE = f"""\
seeds: 0-7
controls: [untrained]
domains:
  graph: {{datasets: [{", ".join(GRAPHS)}]}}
  tabular: {{datasets: [{", ".join(TABLES)}]}}
losses: [infonce, adnce, hcl]
"""


class Study:
    """A sweep file with records of given means, a little apart by seed and set."""

    def __init__(self, folder: Path, text: str = FILE) -> None:
        self.folder = folder
        path = folder / "mine.yaml"
        path.write_text(text)
        self.table = load_table(str(path))
        self.noise = np.random.default_rng(0)

    def add(self, row: str, column: str, mean: float, seeds: range = range(8), **more: str) -> None:
        line = next(one for one in self.table.rows if one.name == row)
        for seed in seeds:
            score = {"accuracy": mean + float(self.noise.normal()) / 2}
            place = self.table.places[line.name, column]
            about = {"data_hash": (column * 64)[:64], **more}
            made(self.folder, place.work, seed, metrics=score, **about)

    def fill(self, **means: float) -> "Study":
        for row, mean in means.items():
            for column in self.table.columns:
                self.add(row, column, mean)
        return self

    @property
    def resolved(self) -> Resolved:
        return resolve(self.table, None, self.folder)

    @property
    def verdicts(self) -> Verdicts:
        return compare(self.resolved)


def of(found: Verdicts, row: str) -> Judged:
    return next(
        one for one in (*found.rows, *found.controls) if row in (one.effect.row, *one.effect.also)
    )


def test_sets_decide_and_the_answer_names_who_is_better(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=74.0, hcl=70.0)
    found = study.verdicts
    words = {row: of(found, row).over.verdict for row in ("adnce", "hcl", "untrained")}
    assert words == {"adnce": "better", "hcl": "equal", "untrained": "worse"}
    assert of(found, "adnce").over.mean == pytest.approx(20, abs=2)
    assert found.decides
    answer = " ".join(said(compared(study.resolved)))
    assert "better: adnce (+" in answer
    assert "equal within 5: hcl (" in answer


def test_records_of_other_data_change_neither_gate_nor_gain_nor_verdicts(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=71.5, hcl=70.0)
    before, gate = study.verdicts.rows, conditions(study.resolved)
    for row, mean in {"infonce": 70.0, "untrained": 72.0, "adnce": 80.0}.items():
        study.add(row, "MUTAG", mean, range(3), data_hash="1" * 64)
    assert conditions(study.resolved) == gate
    assert study.verdicts.rows == before


def test_columns_of_equal_data_are_one_set(tmp_path: Path) -> None:
    """Copies of one table under other names are no evidence of sets."""
    study = Study(tmp_path)
    for row, mean in {"infonce": 70.0, "untrained": 50.0, "adnce": 60.0}.items():
        for column in study.table.columns:
            study.add(row, column, mean, data_hash="1" * 64)
    adnce = of(study.verdicts, "adnce")
    assert {*adnce.effect.by_set} == {("graph", "MUTAG"), ("tabular", "wine")}
    assert adnce.over.verdict == Verdict.UNTESTED


def test_a_loss_that_fails_on_a_set_is_not_better_by_the_others(tmp_path: Path) -> None:
    study = Study(tmp_path, FILE.replace("controls: [untrained]\n", ""))
    study.fill(infonce=70.0, hcl=70.0)
    for column in study.table.columns:
        if column != "wine":
            study.add("adnce", column, 74.0)
    study.add("adnce", "wine", 50.0, status="diverged")
    found = study.verdicts
    assert of(found, "adnce").over.verdict == Verdict.UNDECIDED
    assert of(found, "adnce").effect.failed == {("tabular", "wine")}
    assert "adnce on wine" in " ".join(said(found, "gaps"))


def test_a_loss_is_not_worse_than_what_is_left_of_a_baseline_that_diverges(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(untrained=50.0, adnce=66.0, hcl=70.0)
    for column in study.table.columns:
        if column != "wine":
            study.add("infonce", column, 70.0)
    study.add("infonce", "wine", 70.0, range(4), status="diverged")
    study.add("infonce", "wine", 70.0, range(4, 8))
    found = study.verdicts
    single = {(one.row, one.column): one.verdict for one in found.places}
    assert (single["adnce", "MUTAG"], single["adnce", "wine"]) == ("worse", "undecided")
    assert of(found, "adnce").over.verdict == of(found, "hcl").over.verdict == Verdict.UNDECIDED


def test_effects_that_cancel_over_domains_are_shown_in_each(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, hcl=70.0)
    for column in GRAPHS:
        study.add("adnce", column, 73.0)
    for column in TABLES:
        study.add("adnce", column, 67.0)
    adnce = of(study.verdicts, "adnce")
    assert abs(adnce.over.mean) < 5
    assert adnce.by_domain["graph"].verdict == Verdict.BETTER
    assert (adnce.over.verdict, adnce.hangs_on["tabular"]) == (Verdict.EQUAL, Verdict.BETTER)
    row = next(r for r in comparison_rows(study.verdicts) if r["method"] == "adnce")
    assert (row["over_sets_verdict"], row["over_sets_effect"]) == ("equal", adnce.over.mean)
    assert "tabular (better)" in row["hangs_on"]
    shown = json.loads(render_comparison(study.resolved, "json"))["rows"]
    assert next(r for r in shown if r["methods"] == ["adnce"])["hangs_on"] == adnce.hangs_on
    assert f"of {adnce.tried}: {row['hangs_on']}" in render_comparison(study.resolved, "md")


def test_losses_that_have_yet_to_run_are_counted(tmp_path: Path) -> None:
    for other in ("decoupled", "hcl"):  # the first is infonce on graphs
        study = Study(tmp_path, FILE.replace("hcl", other))
        counted = study.fill(infonce=70.0, untrained=50.0, adnce=74.0).verdicts.counted
        assert (counted.to_come, counted.without_results) == (1, [other])
    before = of(study.verdicts, "adnce").over.holm
    after = of(study.fill(hcl=70.0).verdicts, "adnce").over.holm
    assert before == pytest.approx(after)


def test_controls_are_no_losses_whatever_the_baseline(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=70.0, hcl=70.0)
    found = compare(study.resolved, "untrained")
    assert (found.controls, found.counted.gains) == ([], {})
    assert of(found, "infonce").over.verdict == Verdict.BETTER


def test_a_control_that_does_not_come_out_makes_the_comparison_unreadable(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=70.0, adnce=74.0, hcl=70.0)
    found = study.verdicts
    assert [one.effect.row for one in found.wrong] == ["untrained"]
    assert found.counted.nothing_counts
    assert not found.decides
    assert "cannot be read" in " ".join(said(found))


def test_latex_has_bold_where_the_verdict_is_alone(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=74.0, hcl=70.2)
    text = render_comparison(study.resolved, "latex")
    bold = {line.split(" & ")[0] for line in text.splitlines() if "textbf" in line}
    assert bold == {r"\textbf{adnce}"}


def test_json_has_rows_places_and_the_answer(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=74.0, hcl=70.2)
    found = json.loads(render_comparison(study.resolved, "json"))
    rows = {row["methods"][0]: row for row in found["rows"]}
    assert rows["adnce"]["verdict"] == "better"
    assert len(rows["adnce"]["sets"]) == 6
    assert len(found["places"]) == 3 * 6
    assert rows["untrained"]["control"] == "untrained"


def test_a_suite_of_sets_has_no_verdict_on_a_single_one(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=74.0, hcl=70.0)
    assert {one.verdict for one in study.verdicts.places if one.row == "adnce"} == {"better"}
    suite = study.table.but(quick=QuickPart(datasets=["wine"]), tune=Tune(), sweep=True)
    suite = suite.but(seeds=[*range(8)])
    base = baseline_row(study.resolved)
    places = compare_rows(replace(study.resolved, table=suite), base)
    assert {one.verdict for one in places} == {"untested"}
