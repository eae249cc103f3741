"""What a comparison must not count: other data, survivors, certainty of one domain, controls."""

import re
from pathlib import Path

import numpy as np
import pytest

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS, Measured
from contrastbench.benchmarks.comparison.signed_rank import detectable_effect, p_values
from contrastbench.benchmarks.report.comparison import compared, render_comparison
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from made_records import made
from suites import conditions

SEEDS = SET_TESTS["seeds"]
FILE = """\
seeds: 0-7
controls: [untrained]
test: seeds
domains: {graph: {datasets: [MUTAG, DD]}, tabular: {datasets: [wine]}}
losses: [infonce, adnce, hcl]
"""


class Study:
    """A sweep file with records of given means, a little apart by seed."""

    def __init__(self, folder: Path, text: str = FILE) -> None:
        self.folder = folder
        path = folder / "mine.yaml"
        path.write_text(text)
        self.table = load_table(str(path))
        self.noise = np.random.default_rng(0)

    def add(self, row: str, column: str, mean: float, seeds: range = range(8), **more: str) -> None:
        """Add a record of each seed."""
        line = next(one for one in self.table.rows if one.name == row)
        for seed in seeds:
            score = {"accuracy": mean + float(self.noise.normal()) / 2}
            made(
                self.folder, self.table.places[line.name, column].work, seed, metrics=score, **more
            )

    def fill(self, **means: float) -> "Study":
        """Add the records of rows on all sets."""
        for row, mean in means.items():
            for column in self.table.columns:
                self.add(row, column, mean)
        return self

    @property
    def resolved(self) -> Resolved:
        """Return the table with its records."""
        return resolve(self.table, None, self.folder)

    @property
    def answer(self) -> str:
        """Return the answer of the comparison."""
        return " ".join(said(compared(self.resolved)))


def test_records_of_other_data_change_neither_gate_nor_gain_nor_the_verdicts_of_losses(
    tmp_path: Path,
) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=71.5, hcl=70.0)
    before, gate = study.answer, conditions(study.resolved)
    for row, mean in {"infonce": 70.0, "untrained": 72.0, "adnce": 80.0}.items():
        study.add(row, "MUTAG", mean, range(3), data_hash="1" * 64)
    assert conditions(study.resolved) == gate
    assert study.answer == before
    listed = {one.row: one.family for one in compare(study.resolved).places if not one.control}
    assert listed == {"adnce": 6, "hcl": 6}


WITHOUT_CONTROLS = FILE.replace("controls: [untrained]\n", "")


def test_what_is_untrained_is_no_loss_that_is_worse_on_single_sets(tmp_path: Path) -> None:
    text = WITHOUT_CONTROLS.replace("losses: [", "losses: [none, ")
    study = Study(tmp_path, text).fill(infonce=70.0, none=50.0, adnce=70.0, hcl=70.0)
    assert {one.row for one in compare(study.resolved).single_sets.places} == {"adnce", "hcl"}
    assert "better or worse than infonce on any single data set" in study.answer
    alone = Study(tmp_path, text.replace(", adnce, hcl", "")).resolved
    assert {one.row for one in compare(alone).single_sets.places} == {"none"}


def test_a_loss_that_fails_on_a_set_is_not_better_by_the_others(tmp_path: Path) -> None:
    study = Study(tmp_path, WITHOUT_CONTROLS).fill(infonce=70.0, hcl=70.0)
    for column in ("MUTAG", "DD"):
        study.add("adnce", column, 72.0)
    study.add("adnce", "wine", 50.0, status="diverged")
    over_sets = study.answer.split("On single data sets ")[0]
    assert "better than infonce: adnce" not in over_sets
    assert "undecided: adnce" in over_sets
    assert "Failed on some sets, and so neither better nor equal: adnce." in study.answer
    assert "have run on" not in study.answer


def test_a_loss_is_not_worse_than_what_is_left_of_a_baseline_that_diverges(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(untrained=50.0, adnce=66.0, hcl=70.0)
    for column in ("MUTAG", "DD"):
        study.add("infonce", column, 70.0)
    study.add("infonce", "wine", 70.0, range(4), status="diverged")
    study.add("infonce", "wine", 70.0, range(4, 8))
    found = {(one.row, one.column): one.verdict for one in compare(study.resolved).places}
    assert found["adnce", "MUTAG"] == "worse"
    assert found["adnce", "wine"] == "undecided"
    assert "undecided: hcl, adnce" in study.answer
    assert "infonce itself diverged on wine (4 seeds), so no loss is worse or equal" in study.answer


def test_effects_that_cancel_over_domains_are_shown_in_each(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, hcl=70.0)
    for column, mean in {"MUTAG": 73.0, "DD": 73.0, "wine": 67.0}.items():
        study.add("adnce", column, mean)
    shown = render_comparison(study.resolved, "md")
    assert "equal within 10 % of the training gain in each domain: hcl " in shown
    assert re.search(r"better and worse: adnce \(graph \+1\d, tabular -1\d %\)", shown)
    table = study.table.but(asked=["adnce"])
    mine = " ".join(said(compared(resolve(table, None, tmp_path))))
    text = (
        r"adnce against infonce is better on graph \(\+1\d\), worse on tabular \(-1\d\), on these"
    )
    assert re.search(text, mine)
    (line,) = (one for one in shown.splitlines() if one.startswith("| adnce |"))
    assert line.count("*") == 2
    (line,) = (one for one in shown.splitlines() if one.startswith("| hcl |"))
    assert "*" not in line
    assert "A star: that domain shows a difference; =: equal there." in shown


def test_losses_that_have_yet_to_run_are_counted(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=70.0)
    over = compare(study.resolved, "infonce", "t").over
    assert (over.to_come, over.without_results, over.test.name) == (1, ["hcl"], "t-test")
    assert [one.must for one in over.effects if one.must] == ["worse"]


def test_controls_are_no_losses_whatever_the_baseline(tmp_path: Path) -> None:
    study = Study(tmp_path).fill(infonce=70.0, untrained=50.0, adnce=70.0, hcl=70.0)
    answer = " ".join(said(compared(study.resolved, "untrained")))
    assert answer.endswith("(9 tests, Holm).")
    assert "better than untrained: infonce (3 of 3 data sets)" in answer


def test_seeds_that_agree_in_one_domain_are_no_certainty_in_the_mean() -> None:
    agree = Measured(5.0, dict.fromkeys(range(3), 5.0))
    apart = Measured(0.0, {0: 0.1, 1: -0.1, 2: 0.0})
    effects = {("graph", "a"): agree, ("tabular", "b"): apart}
    assert SEEDS.p_value(effects) == 1.0
    assert SEEDS.smallest_p(effects) == 1.0
    nothing = {("graph", "a"): Measured(0.0), ("tabular", "b"): apart}
    assert SEEDS.smallest_p(nothing) == 0.0, "a loss that is the baseline there has no error"


@pytest.mark.parametrize("alpha", [2e-4, 3e-4])
def test_power_is_known_at_levels_that_few_choices_of_signs_reach(alpha: float) -> None:
    weights = (1 / 20,) * 20
    effect = detectable_effect(weights, alpha)
    assert effect is not None
    samples = np.random.default_rng(1).normal(size=(300, 20)) + effect
    assert (p_values(samples, weights) <= alpha).mean() == pytest.approx(0.8, abs=0.08)
