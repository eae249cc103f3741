"""Rows against a baseline: which runs make a pair, what is tested, and what it is called."""

from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from contrastbench.benchmarks.comparison import statistics
from contrastbench.benchmarks.comparison.compare import baseline_row, compare
from contrastbench.benchmarks.comparison.pairs import (
    Comparison,
    compare_cell,
    differences_by_fold,
    redrawn,
)
from contrastbench.benchmarks.comparison.statistics import corrected_t, holm
from contrastbench.benchmarks.report.comparison import render_comparison
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import UserError
from made_records import made, small_table
from opened import opened

SMALL = small_table(
    columns={"A": {"dataset": "MUTAG"}, "B": {"dataset": "DD"}, "C": {}},
    rows=[
        {"name": "quoted", "paper": {"A": [80.0]}},
        {"name": "new", "loss": "adnce"},
        {"name": "base", "loss": "infonce"},
        {"name": "also", "loss": "infonce", "params": {"temperature": 0.3}},
    ],
)


def add(results: Path, row: str, column: str, seed: int, folds: list[float], **change: Any) -> None:
    work = SMALL.places[row, column].work
    made(
        results,
        work,
        seed,
        metrics={"accuracy": sum(folds) / len(folds)},
        **{"details": {"folds": folds}, **change},
    )


def lost(results: Path, row: str, column: str, seed: int, status: str) -> None:
    work = SMALL.places[row, column].work
    made(results, work, seed, status=status)


def places(results: Path, baseline: str | None = None, table: Table = SMALL) -> list[Comparison]:
    return [*compare(resolve(table, None, results), baseline).places]


def shown(results: Path, *about: Any, **more: Any) -> str:
    return render_comparison(resolve(SMALL, None, results), *about, **more)


FOLDS = {  # row -> seed -> two folds
    "base": {0: [80.0, 90.0], 1: [82.0, 91.0], 2: [81.0, 86.0], 3: [70.0, 71.0]},
    "new": {0: [81.0, 93.0], 1: [85.0, 93.0], 2: [82.5, 90.0], 7: [99.0, 99.0]},
}


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    for row, seeds in FOLDS.items():
        for seed, folds in seeds.items():
            add(tmp_path, row, "A", seed, folds)
    return tmp_path


def test_pairs_are_the_seeds_that_both_have(filled: Path) -> None:
    (found,) = places(filled)
    assert (found.row, found.column, found.seeds, found.unpaired) == ("new", "A", (0, 1, 2), 2)
    shared = [(sum(FOLDS["base"][s]) / 2, sum(FOLDS["new"][s]) / 2) for s in (0, 1, 2)]
    assert found.baseline == pytest.approx(sum(a for a, _ in shared) / 3)
    assert found.ours == pytest.approx(sum(b for _, b in shared) / 3)
    differences = [b - a for a, b in shared]
    assert (found.difference, found.std) == pytest.approx((fmean(differences), stdev(differences)))
    assert "3 (+2 unpaired)" in shown(filled, "md", every_test=True)


def test_a_place_says_which_seeds_are_shared_alone_and_lost(filled: Path) -> None:
    for row, other, seed, status in (
        ("base", "new", 4, "diverged"),
        ("new", "base", 5, "diverged"),
    ):
        lost(filled, row, "A", seed, status)
        add(filled, other, "A", seed, [80.0, 81.0])
    lost(filled, "base", "A", 6, "oom")
    add(filled, "new", "A", 6, [80.0, 81.0])
    resolved = resolve(SMALL, None, filled)
    _, new, base, _ = resolved.lines
    found = compare_cell(resolved, base, new, "A")
    assert (found.seeds, found.unpaired, found.family) == ((0, 1, 2), 5, 1)
    assert (found.lost, found.base_lost) == ((5,), (4,)), "too little memory says nothing"
    assert (found.control, found.same_as, found.joined) == ("", "", False)
    assert (found.domain, found.dataset, len(found.runs)) == ("graph", "MUTAG", 6)


@pytest.mark.parametrize(
    ("about", "final"),
    [
        ({}, False),
        ({"why": "the same runs"}, True),
        ({"failure": "oom (1 of 1)"}, True),
        ({"why": "incomplete", "incomplete": "1 of 3"}, False),
    ],
)
def test_a_place_that_is_to_run_is_not_final(about: dict[str, str], final: bool) -> None:
    assert Comparison("new", "A", "graph", **about).is_final == final


def test_folds_of_one_seed_are_compared_and_corrected(filled: Path) -> None:
    (found,) = places(filled)
    folds = [1.0, 3.0, 3.0, 2.0, 1.5, 4.0]
    assert (found.n, found.ratio) == (6, 1.0)  # two folds: as much tested as trained on
    assert found.t.p == pytest.approx(corrected_t(folds, 1.0).p)


def test_folds_are_the_same_graphs_for_every_loss() -> None:
    graphs = partial(opened, "graph", "motifs", limit=60, folds=3)
    one, two, other = (
        graphs(seed=3),
        graphs(seed=3, augmentation="random4", lr=0.1),
        graphs(seed=4),
    )
    assert torch.equal(one.graphs.y, two.graphs.y)
    assert torch.equal(one.graphs.edge_index, two.graphs.edge_index)
    assert not torch.equal(one.graphs.y, other.graphs.y)


@pytest.mark.parametrize(
    "change",
    [{"folds": [60.0, 61.0, 62.0]}, {"limit": 50}],
    ids=["another number of folds", "other graphs"],
)
def test_other_folds_are_not_compared(change: dict[str, Any]) -> None:
    a = {"details": {"folds": [1.0, 2.0]}, "recipe": {"limit": None}, "metrics": {"accuracy": 1.5}}
    assert differences_by_fold(a, a, "accuracy") == [0.0, 0.0]
    folds = change.get("folds", [1.0, 2.0])
    b = {
        "details": {"folds": folds},
        "recipe": {"limit": change.get("limit")},
        "metrics": {"accuracy": sum(folds) / len(folds)},
    }
    assert differences_by_fold(a, b, "accuracy") == []


def test_folds_of_another_metric_are_not_taken_for_it() -> None:
    record = {"details": {"folds": [1.0, 2.0]}, "recipe": {}, "metrics": {"f1": 1.6}}
    assert differences_by_fold(record, record, "f1") == []


def test_folds_of_a_transfer_task_are_compared_and_a_single_split_is_none() -> None:
    folds = [{"accuracy": 70.0, "C": 0.5}, {"accuracy": 74.0, "C": 1.0}]
    record = {
        "details": {"tasks": {"MR": folds, "SST2": folds[:1]}, "test_part": "fixed"},
        "recipe": {"limit": None},
        "metrics": {"MR": 72.0, "SST2": 70.0, "avg": 71.0},
    }
    better = {**record, "metrics": {"MR": 74.5, "SST2": 80.0, "avg": 77.25}}
    above = [{"accuracy": 71.0}, {"accuracy": 78.0}]
    better["details"] = {"tasks": {"MR": above, "SST2": [{"accuracy": 80.0}]}, "test_part": "fixed"}
    assert differences_by_fold(record, better, "MR") == [1.0, 4.0]
    assert differences_by_fold(record, better, "SST2") == []
    assert differences_by_fold(record, better, "avg") == []


def test_splits_drawn_by_the_seed_are_corrected() -> None:
    samples = {"train": 60, "validation": 20, "test": 20}
    drawn = {"domain": "tabular", "details": {"samples": samples, "test_part": "redrawn"}}
    assert redrawn(drawn) == pytest.approx(1 / 3)
    fixed = {"domain": "tabular", "details": {"samples": samples, "test_part": "fixed"}}
    assert redrawn(fixed) == 0.0


def test_records_that_do_not_say_how_they_were_split_are_understood() -> None:
    details = {"rows": {"train": 60, "validation": 20, "test": 20}}
    early = {"domain": "tabular", "details": details}
    assert redrawn(early | {"dataset": "csv:mine.csv"}) == pytest.approx(1 / 3)
    assert redrawn(early | {"dataset": "digits-table"}) == pytest.approx(1 / 3)
    assert redrawn(early | {"dataset": "CoverType"}) == 0.0
    assert redrawn({"domain": "sentence", "dataset": "sts", "details": {}}) == 0.0


def test_one_seed_is_no_test_however_many_folds(tmp_path: Path) -> None:
    add(tmp_path, "base", "A", 0, [80.0, 90.0])
    add(tmp_path, "new", "A", 0, [85.0, 99.0])
    (found,) = places(tmp_path)
    assert found.difference == pytest.approx(7.0)
    assert (found.t.p, found.holm) == (None, None)
    assert (found.verdict, found.why) == ("untested", "too few: 1 pair")


def test_verdicts_are_those_of_holms_p(tmp_path: Path) -> None:
    for seed in range(4):
        add(tmp_path, "base", "A", seed, [80.0 + seed, 80.0])
        add(tmp_path, "base", "B", seed, [70.0, 70.0])
        add(tmp_path, "new", "A", seed, [88.0 + seed, 88.0 + 0.5 * seed])
        add(tmp_path, "new", "B", seed, [69.0, 71.5])
        add(tmp_path, "also", "A", seed, [77.0 + seed, 77.0 + 0.5 * seed])
    found = places(tmp_path, "base")
    assert {(c.row, c.column): c.verdict for c in found} == {
        ("new", "A"): "better",
        ("new", "B"): "undecided",
        ("also", "A"): "worse",
    }
    ps = [c.t.p for c in found if c.t.p is not None]
    assert [c.holm for c in found] == holm([*ps, 1.0])[:3], "also is to run on B"
    for seed in range(4):
        add(tmp_path, "also", "B", seed, [70.0, 70.0])
    late = places(tmp_path, "base")
    assert [c.verdict for c in late] == [*(c.verdict for c in found), "undecided"]


def test_power_is_computed_only_where_it_is_shown(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(statistics, "noncentrality", lambda *about: asked.append(about) or 3.0)
    shown(filled, "md")
    assert not asked
    shown(filled, "md", every_test=True)
    assert {level for _, level in asked} == {0.05 / 2}, "Holm's first of two"


def test_the_answer_comes_first(tmp_path: Path) -> None:
    for seed in range(5):
        add(tmp_path, "base", "A", seed, [50.0 + seed, 51.0])
        add(tmp_path, "new", "A", seed, [60.0 + seed, 61.0 + 0.1 * seed])
    better = shown(tmp_path, "md", every_test=True)
    assert "better than base: new (A); worse than base: none" in better.splitlines()[0]
    worse = shown(tmp_path, "md", baseline="new")
    assert "better than new: none; worse than new: base (A)" in worse.splitlines()[0]


def test_few_sets_are_shown_one_by_one(filled: Path) -> None:
    lines = shown(filled, "md").splitlines()
    assert [line for line in lines if line.startswith("| ")] == [
        "| Method | A |",
        "| --- | --- |",
        *[line for line in lines if line.startswith("| new | ")],
    ]
    assert lines[-1] == "bench compare with --all shows every test and its power."


def test_a_row_that_is_the_baseline_under_another_name_is_not_tested(filled: Path) -> None:
    rows = [*SMALL.rows, SMALL.rows[2].model_copy(update={"name": "again"})]
    found = {c.row: c for c in places(filled, table=SMALL.but(rows=rows))}
    again = found["again"]
    assert (again.verdict, again.why, again.holm) == ("untested", "the same runs", None)
    assert (again.difference, again.baseline) == (None, None)  # a search alone ends there


def test_runs_on_other_data_are_not_tested(tmp_path: Path) -> None:
    for seed in range(3):
        add(tmp_path, "base", "A", seed, [80.0, 90.0])
        add(tmp_path, "new", "A", seed, [85.0, 99.0 + seed], data_hash="1" * 64)
    (found,) = places(tmp_path)
    assert (found.t.p, found.why) == (None, "other data or starting weights")


def test_runs_that_are_scored_by_other_metrics_are_not_compared(tmp_path: Path) -> None:
    """A record may have another main metric, and lack the baseline's."""
    for seed in range(3):
        add(tmp_path, "base", "A", seed, [80.0, 90.0])
        other = {"main": "f1", "metrics": {"f1": 99.0 - seed}}
        made(tmp_path, SMALL.places["new", "A"].work, seed, **other)
    table = SMALL.model_copy(update={"metric": None})
    (found,) = compare(resolve(table, None, tmp_path)).places
    assert (found.difference, found.why) == (None, "other metrics: accuracy, f1")


def test_the_baseline_is_infonce_unless_named(filled: Path) -> None:
    assert baseline_row(resolve(SMALL, None, Path())).name == "base"
    assert baseline_row(resolve(SMALL, None, Path()), "new").name == "new"
    (found,) = places(filled, "new")
    assert (found.row, found.difference) == ("base", pytest.approx(-14.5 / 6))


def test_what_joins_comes_first(tmp_path: Path) -> None:
    for seed in range(5):
        add(tmp_path, "base", "A", seed, [50.0 + seed, 51.0])
        add(tmp_path, "base", "B", seed, [50.0 + seed, 51.0])
        add(tmp_path, "new", "A", seed, [50.5 + seed, 50.5])
        add(tmp_path, "new", "B", seed, [50.5 + seed, 50.5])
        add(tmp_path, "also", "A", seed, [60.0 + seed, 61.0 + 0.1 * seed])
    joined = SMALL.but(asked=["also"], joined=["also"])
    assert [one.row for one in places(tmp_path)] == ["new", "new", "also"]
    assert [one.row for one in places(tmp_path, table=joined)] == ["also", "new", "new"]


def test_losses_without_results_are_named_and_nothing_is_said_of_them(
    bench, tmp_path: Path
) -> None:
    text = "domains: {tabular: {datasets: [wine, iris]}}\nseeds: 0-3\n"
    path = tmp_path / "mine.yaml"
    path.write_text(text + "losses: [infonce, adnce, hcl, cpc]\n")
    table = load_table(str(path))
    for row, mean in (("infonce", 70.0), ("adnce", 70.0), ("hcl", 60.0)):
        for seed in range(4):
            (work,) = (table.places[one.name, "wine"].work for one in table.rows if one.name == row)
            made(tmp_path, work, seed, metrics={"accuracy": mean + seed * (row != "hcl") / 10})
    (work,) = (table.places[one.name, "iris"].work for one in table.rows if one.name == "adnce")
    made(tmp_path, work, 0, metrics={"accuracy": 80.0})
    code, out, _ = bench("compare", str(path), "--results", str(tmp_path))
    assert code == 0
    assert "No results yet: cpc. " in out
    assert "Only one side has run: iris." in out


def test_csv_has_the_numbers(filled: Path) -> None:
    lines = shown(filled, "csv").splitlines()
    found = dict(zip(*(line.split(",") for line in lines), strict=True))
    names = ("method", "against", "seeds", "unpaired", "t_n", "verdict")
    assert [found[name] for name in names] == ["new", "base", "0 1 2", "2", "6", "undecided"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": {"rows": SMALL.rows[:1]}}, "only quoted rows"),
        ({"table": {"metric": "acuracy"}}, "unknown metric of column 'A' 'acuracy': did you mean"),
        ({"baseline": "bas"}, "unknown row of small that can be run 'bas': did you mean 'base'"),
        ({"baseline": "quoted"}, "unknown row of small that can be run 'quoted'"),
        ({"format_": "pdf"}, "unknown format 'pdf'"),
        ({"baseline": "also"}, r"common with also under .* \(new on B: .* also on A, B: not run\)"),
    ],
)
def test_wrong_questions_are_one_line(filled: Path, change: dict[str, Any], message: str) -> None:
    about = {"format_": "md", **change}
    table = SMALL.model_copy(update=about.pop("table", {}))
    with pytest.raises(UserError, match=message):
        render_comparison(resolve(table, None, filled), **about)


def failing(results: Path) -> Path:
    """Three rows on two sets, of which `new` diverges on the second with both seeds."""
    for seed in range(2):
        for place, row in enumerate(("new", "base", "also")):
            add(results, row, "A", seed, [80.0 - place, 80.0 + seed])
        lost(results, "new", "B", seed, "diverged")
        for place, row in enumerate(("base", "also")):
            add(results, row, "B", seed, [70.0 - place, 70.0 + seed])
    return results


def test_a_row_that_diverges_has_a_line_and_a_column(tmp_path: Path) -> None:
    found = {(c.row, c.column): c for c in places(failing(tmp_path))}
    lost = found["new", "B"]
    assert (lost.verdict, lost.failure, lost.seeds) == ("failed", "diverged (2 of 2)", ())
    text = shown(tmp_path, "md", every_test=True)
    empty = " | ".join("-" * 7)
    assert f"| new | B | 0 (+2 unpaired) | {empty} | failed (diverged (2 of 2)) |" in text
    assert "Failed: new on B." in text.splitlines()[0]
    line = next(line for line in shown(tmp_path, "csv").splitlines() if ",failed," in line)
    assert line.startswith("small,new,base,B,")
    assert ",failed,,diverged (2 of 2)," in line
    assert line.endswith(",untested,")


def test_a_row_that_diverges_with_some_seeds_is_not_better_by_the_others(tmp_path: Path) -> None:
    for row, above in (("base", 0.0), ("also", -1.0), ("new", 9.0)):
        for column, seed in product("AB", range(6)):
            if row == "new" and seed > 3:
                lost(tmp_path, row, column, seed, "diverged")
            else:
                add(tmp_path, row, column, seed, [70.0 + above, 70.0 + (1 + 0.01 * seed) * above])
    resolved = resolve(SMALL, None, tmp_path)
    found = next(one for one in compare(resolved, "base").places if one.row == "new")
    assert (found.verdict, found.lost, found.holm < 0.05) == ("undecided", (4, 5), True)
    text = render_comparison(resolved, "md", "base")
    assert "Diverged with some seeds: new on A, new on B." in text


def test_lines_without_training_as_a_baseline_have_no_controls_and_no_gain(tmp_path: Path) -> None:
    rows = [*SMALL.model_dump(exclude_defaults=True)["rows"], {"name": "none", "loss": "none"}]
    table = Table(**{**SMALL.model_dump(exclude_defaults=True), "rows": rows})
    for row, column, seed in product(table.rows[1:], "AB", range(4)):
        score = {"none": 60.0}.get(row.name, 70.0) + seed
        made(tmp_path, table.places[row.name, column].work, seed, metrics={"accuracy": score})
    resolved = resolve(table, None, tmp_path)
    assert [one.effect.row for one in compare(resolved).controls] == ["none"]
    assert compare(resolved, "none").controls == []


def test_a_baseline_that_diverges_does_not_drop_the_others(tmp_path: Path) -> None:
    found = {(c.row, c.column): c for c in places(failing(tmp_path), "new")}
    lost = found["base", "B"]
    assert (lost.verdict, lost.why) == ("untested", "the baseline diverged (2 of 2)")


def test_seeds_that_failed_are_said_beside_those_that_did_not(filled: Path) -> None:
    lost(filled, "new", "A", 3, "oom")
    (found,) = places(filled)
    assert (found.seeds, found.failure) == ((0, 1, 2), "oom (1 of 5)")
    assert "| undecided (oom (1 of 5)) |" in shown(filled, "md", every_test=True)


def test_a_later_try_that_went_well_is_no_failure(filled: Path) -> None:
    lost(filled, "new", "A", 0, "failed")
    assert places(filled)[0].failure == ""


def test_a_corpus_that_trains_is_no_other_data_to_score_on(tmp_path: Path) -> None:
    for seed in range(3):
        add(tmp_path, "base", "A", seed, [80.0, 90.0])
        corpus = {"data_hash": "1" * 64, "details": {"folds": [], "scored_data": "0" * 64}}
        add(tmp_path, "new", "A", seed, [85.0, 99.0 + seed], **corpus)
    (found,) = places(tmp_path)
    assert (found.seeds, found.why) == ((0, 1, 2), "")
    assert found.t.p is not None


def test_rows_of_two_corpora_meet_on_the_same_one(tmp_path: Path) -> None:
    for corpus, level in (("1" * 64, 50.0), ("2" * 64, 70.0)):
        about = {"data_hash": corpus, "details": {"folds": [], "scored_data": "0" * 64}}
        for seed in range(3):
            add(tmp_path, "base", "A", seed, [level, level + seed], **about)
            add(tmp_path, "new", "A", seed, [level + 1, level + 1.5 * seed], **about)
        if level == 50.0:
            add(tmp_path, "base", "A", 3, [level], **about)
    found, *_ = places(tmp_path)
    assert found.difference is not None
    assert abs(found.difference) < 2, "not of one corpus against the other"
