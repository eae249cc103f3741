"""Rows of a sweep that are one loss by algebra run once, say so, and are counted once."""

import csv
import io
from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.report import comparison as comparisons
from contrastbench.benchmarks.report.tables import choice_lines, render_table
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses.spec import LossSpec
from made_records import made

LOSSES = "losses: [decoupled, infonce, {debiased: {tau_plus: 0}}, npair, adnce]\n"
DOMAINS = "domains: {graph: {}, sentence: {}, tabular: {}}\nseeds: 0-2\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def call(text: str) -> Table:
        (tmp_path / "my.yaml").write_text(text)
        return load_table("my.yaml")

    return call


def marked(table: Table) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for (row, column), place in table.places.items():
        if place.same_as:
            found.setdefault(row, {})[column] = place.same_as
    return found


def test_a_pairing_says_which_rows_are_the_same(load) -> None:
    """Npair has another temperature by default, so its numbers are others."""
    table = load(DOMAINS + LOSSES)
    everywhere = dict.fromkeys(table.columns, "infonce")
    outside = {"label-pairs": "infonce", "graded": "infonce"}
    assert marked(table) == {"decoupled": outside, "debiased (tau_plus=0)": everywhere}
    assert len(plan.runnable_places(table, ["loss=decoupled"])) == 3
    cells = plan.Plan(table, plan.runnable_places(table), [0], "paper", Path("results")).tasks()
    assert len(cells) == 4 + 3 + 3, "decoupled runs on tables, and nothing of debiased"


def test_a_search_without_parameters_of_its_own_is_the_simpler_losss_search(load) -> None:
    table = load(DOMAINS + "losses: [decoupled, infonce, npair, debiased, cpc]\ntune: {}\n")
    assert marked(table) == {
        "decoupled": {"label-pairs": "infonce", "graded": "infonce"},
        "npair": {"hidden-clusters": "infonce"},
    }
    given = load(
        DOMAINS
        + "losses: [{infonce: {temperature: 0.2}}, infonce, {decoupled: {temperature: 0.2}},"
        " {hcl: {temperature: 0.2, beta: 0, tau_plus: 0}}, {debiased: {temperature: 0.2}}]\n"
        "tune: {}\n"
    )
    one = "infonce (temperature=0.2)"
    assert marked(given) == {
        "decoupled (temperature=0.2)": {"label-pairs": one, "graded": one},
        "hcl (temperature=0.2, beta=0, tau_plus=0)": dict.fromkeys(given.columns, one),
    }


def test_a_smoke_test_keeps_its_rows_apart() -> None:
    assert marked(load_table("smoke")) == {}, "a smoke test runs every loss"


def test_a_loss_that_joins_may_be_the_same_too(load) -> None:
    load(DOMAINS + "losses: [infonce]\n")
    table = load_table("my.yaml", losses=[LossSpec("cpc", {"alpha": 0})])
    assert marked(table) == {"cpc (alpha=0)": {"label-pairs": "infonce", "graded": "infonce"}}


def test_it_is_shown_and_counted_once(load, tmp_path: Path) -> None:
    table = load("domains: {tabular: {}}\nseeds: 0-2\n" + LOSSES)
    for place in plan.runnable_places(table):
        for seed in range(3):
            if not place.same_as:
                scores = {"infonce": 80.0, "adnce": 85.0}
                accuracy = scores.get(place.row.name, 70.0) + 0.1 * seed * len(place.row.name)
                details = {"validation": accuracy}
                made(tmp_path, place.work, seed, metrics={"accuracy": accuracy}, details=details)
    assert compare(resolve(table, None, tmp_path / "empty")).places == []
    text = render_table(resolve(table, None, tmp_path), "md")
    assert "| debiased (tau_plus=0) | 80.70 ± 0.70 (3), the same as infonce |" in text
    found = {one.row: one for one in compare(resolve(table, None, tmp_path)).places}
    copy = found["debiased (tau_plus=0)"]
    assert (copy.why, copy.verdict, copy.holm) == (
        "the same as infonce by algebra",
        "untested",
        None,
    )
    assert copy.difference is None
    distinct = [row for row in table.rows if row.name not in marked(table)]
    without = table.model_copy(update={"rows": distinct})
    assert found["adnce"].holm is not None
    assert (
        found["adnce"].holm
        == {one.row: one for one in compare(resolve(without, None, tmp_path)).places}["adnce"].holm
    )
    against = {
        one.row: one.why
        for one in compare(resolve(table, None, tmp_path), "debiased (tau_plus=0)").places
    }
    assert against["infonce"] == "the same as debiased (tau_plus=0) by algebra"
    assert same_in_csv(table, tmp_path, "infonce") == {"debiased (tau_plus=0)": "infonce"}
    assert same_in_csv(table, tmp_path, "adnce") == {"debiased (tau_plus=0)": "infonce"}
    assert same_in_csv(table, tmp_path, "debiased (tau_plus=0)") == {
        "infonce": "debiased (tau_plus=0)"
    }


def same_in_csv(table: Table, results: Path, baseline: str) -> dict[str, str]:
    """Return the rows that a comparison's CSV says to be the same loss as another row."""
    lines = csv.DictReader(
        io.StringIO(comparisons.render_comparison(resolve(table, None, results), "csv", baseline))
    )
    return {line["method"]: line["same_as"] for line in lines if line["same_as"]}


def test_a_search_of_a_loss_that_is_the_baseline_is_not_run(load, tmp_path: Path) -> None:
    table = load(
        "domains: {tabular: {}}\nseeds: 0-2\n"
        "losses: [infonce, decoupled, debiased, npair]\ntune: {}\n"
    )
    asked = plan.Plan(table, plan.runnable_places(table), [0, 1, 2], "validation", tmp_path)
    while missing := [task for task in asked.tasks() if task.state == "missing"]:
        for task in missing:
            loss, seed = task.experiment.loss.complete, task.seed
            value = 80.0 - (loss.name != "infonce") * 5 - abs(loss.params["temperature"] - 0.1)
            details = {"validation": value}
            made(tmp_path, task.experiment, seed, metrics={"accuracy": value}, details=details)
    resolved = resolve(table, None, tmp_path)
    found = {one.row: one for one in compare(resolved).places}
    assert found["npair"].why == "the same as infonce by algebra"
    assert found["debiased"].difference < -4, "a loss runs its own formula at each point"
    assert found["decoupled"].difference < -4
    assert "npair on hidden-clusters: the same as infonce here, by algebra" in list(
        choice_lines(resolved)
    )
