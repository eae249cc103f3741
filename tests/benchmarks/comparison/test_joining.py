"""A loss that joins a suite: the verdict on it, and quick parts, which are never mixed with it."""

import csv
from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables import searches
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import decide, resolve
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.searches import Choice
from contrastbench.benchmarks.tables.table import Selection
from contrastbench.losses.spec import LossSpec
from made_records import made

INFONCE = "from contrastbench.losses.library.infonce import InfoNCE as Mine\n"
MINE = LossSpec("npair", {"temperature": 0.5})
SUITE = """\
title: a suite
seeds: 0-4
controls: [untrained]
quick: {datasets: [DD, AIDS, NCI1, DHFR, ENZYMES, PROTEINS], seeds: 0-2}
domains: {graph: {datasets: [MUTAG, DD, AIDS, NCI1, DHFR, ENZYMES, PROTEINS]}}
losses: [{infonce: {temperature: 0.2}}, adnce]
"""
TUNED = """\
seeds: 0-4
controls: [untrained]
tune: {trials: 4}
quick: {datasets: [wine], seeds: 0-2}
domains: {tabular: {datasets: [wine, iris]}}
losses: [infonce, adnce]
"""


def test_naming_a_loss_of_the_suite_changes_no_verdict(bench, tmp_path: Path) -> None:
    name = sweep(tmp_path)
    record(tmp_path, name, 5, 70.0)
    words = ["compare", name, "--results", str(tmp_path)]
    (code, plain, _), (_, named, _) = bench(*words), bench(*words, "--loss", "adnce")
    assert code == 0
    assert named.startswith("adnce: ")
    assert plain.splitlines()[2:] == named.splitlines()[2:]


def sweep(folder: Path, text: str = SUITE) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def record(folder: Path, name: str, seeds: int, score: float, loss: LossSpec | None = None) -> None:
    table = load_table(name, losses=[loss] if loss else [])
    for row in table.rows:
        if (row.name in table.joined) is bool(loss):
            mean = score - 10 * bool(row.control)
            for column in table.columns:
                for seed in range(seeds):
                    work = table.places[row.name, column].work
                    change = {"loss_code": work.loss.code} if work.loss.code else {}
                    change |= {"data_hash": (column * 64)[:64]}
                    made(folder, work, seed, metrics={"accuracy": mean + 0.1 * seed}, **change)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A suite with all seeds of its rows, and the quick seeds of a loss that joined."""
    name = sweep(tmp_path)
    record(tmp_path, name, 5, 70.0)
    record(tmp_path, name, 3, 73.0, MINE)
    return tmp_path


def interrupted(folder: Path, loss: LossSpec) -> str:
    """Take the last seed of a loss that joined the quick part from a set, and return its name."""
    table = load_table(str(folder / "mine.yaml"), losses=[loss], quick=True)
    column, (name,) = next(iter(table.columns)), table.joined
    written = table.places[name, column].work.folder(folder).glob("*-seed2.json")
    max(written, key=lambda path: path.stat().st_mtime_ns).unlink()  # the baseline's came first
    return column


def test_a_quick_part_is_a_table_of_its_own_with_the_baseline_controls_and_what_joins(
    tmp_path: Path,
) -> None:
    table = load_table(sweep(tmp_path), losses=[MINE], quick=True)
    assert (table.name, table.seeds, len(table.columns)) == ("mine-quick", [0, 1, 2], 6)
    assert table.title == "Quick part of mine, 6 of 7 data sets with 3 of 5 seeds"
    rows = ["infonce (temperature=0.2)", "npair (temperature=0.5)", "untrained"]
    assert [row.name for row in table.rows] == rows
    assert len(load_table(sweep(tmp_path), quick=True).rows) == 3
    assert make_plan(sweep(tmp_path), [], None, False, None, tmp_path, quick=True).seeds == [
        0,
        1,
        2,
    ]


def test_quick_results_do_not_count_in_the_whole_suite(filled: Path) -> None:
    whole = resolve(load_table(str(filled / "mine.yaml"), losses=[MINE]), None, filled)
    mine = [one for one in compare(whole).places if one.joined]
    assert {one.why for one in mine} == {"incomplete: 3 of 5 seeds"}
    assert {one.difference for one in mine} == {None}
    record(filled, str(filled / "mine.yaml"), 5, 73.0, MINE)
    whole = resolve(whole.table, None, filled)
    assert all(one.difference for one in compare(whole).places if one.joined)
    quick = resolve(load_table(str(filled / "mine.yaml"), losses=[MINE], quick=True), None, filled)
    assert {one.seeds for one in compare(quick).places} == {(0, 1, 2)}
    assert {one.seeds for one in compare(whole).places} == {(0, 1, 2, 3, 4)}


def test_a_set_of_a_quick_part_counts_once_its_seeds_have_run(filled: Path) -> None:
    table = load_table(str(filled / "mine.yaml"), losses=[MINE], quick=True)
    column = interrupted(filled, MINE)
    compared = compare(resolve(table, None, filled)).places
    found = {one.column: one.why for one in compared if one.joined}
    assert found[column] == "incomplete: 2 of 3 seeds"
    assert [why for why in found.values() if why.startswith("incomplete")] == [found[column]]


def test_every_answer_says_that_it_is_quick(bench, filled: Path) -> None:
    words = ["mine.yaml", "--loss", "mine.py:Mine", "--quick", "--results", str(filled)]
    (filled / "mine.py").write_text(INFONCE)
    code, out, err = bench("compare", *words)
    assert code == 0, err
    assert "No seed in common with infonce (temperature=0.2): mine.py:Mine." in out
    record(filled, str(filled / "mine.yaml"), 3, 73.0, LossSpec("mine.py:Mine"))
    code, out, _ = bench("compare", *words)
    assert out.startswith("Quick part of mine, 6 of 7 data sets with 3 of 5 seeds.")
    assert "mine.py:Mine: better" in out
    assert "### mine-quick against infonce" in out
    table = list(csv.DictReader(bench("compare", *words, "--format", "csv")[1].splitlines()))
    assert {line["table"] for line in table} == {"mine-quick"}
    assert "### mine-quick: Quick part of mine, 6 of 7" in bench("table", *words)[1]
    assert "mine-quick" in bench("table", *words, "--format", "csv")[1]
    assert bench("report", *words, "--single", "report.html")[0] == 0
    page = " ".join(Path("report.html").read_text().split())
    assert "mine.py:Mine: better" in page
    assert "bench sweep" in page
    code, out, _ = bench("compare", *[word for word in words if word != "--quick"])
    assert "quick part of" not in out
    assert "mine.py:Mine on MUTAG (3 of 5 seeds), mine.py:Mine on DD (3 of 5 seeds), " in out
    interrupted(filled, LossSpec("mine.py:Mine"))
    assert bench("compare", *words)[1].count(" on 5 of 6 sets") == 2, "an interrupted sweep"


def test_what_joins_a_quick_part_has_the_setting_of_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = sweep(tmp_path, TUNED)
    table = load_table(name, losses=[LossSpec("hcl"), LossSpec("adnce")], quick=True)
    asked = (table.places["hcl", "wine"], Selection.VALIDATION, tmp_path)
    assert decide(*asked).choice.why == (
        "infonce: 0 of 4 trials are done (bench merge --shipped adds what ships)"
    )
    best = Setting({"temperature": 0.1}, {"lr": 0.5})
    monkeypatch.setattr(searches, "best_setting", lambda *_: Choice([best]))
    assert decide(*asked).choice.settings == [best]
    listed = next(row for row in table.rows if row.name == "adnce")
    assert not listed.beside, "a row of the suite keeps its own search"


def test_no_loss_of_a_suite_is_judged_by_more_seeds_than_others(tmp_path: Path) -> None:
    name = sweep(tmp_path)
    record(tmp_path, name, 7, 70.0)
    found = compare(resolve(load_table(name), None, tmp_path)).places
    assert {one.seeds for one in found} == {(0, 1, 2, 3, 4)}


def test_data_that_only_other_seeds_saw_are_no_data_of_a_suite(tmp_path: Path) -> None:
    name = sweep(tmp_path)
    record(tmp_path, name, 5, 70.0)
    table = load_table(name)
    work = table.places[table.rows[0].name, "MUTAG"].work
    made(tmp_path, work, 7, metrics={"accuracy": 10.0}, data_hash="1" * 64)
    lines = resolve(table, None, tmp_path).lines
    assert len(lines) == len(table.rows)
    assert {*lines[0].cells["MUTAG"].ok} == {("MUTAG" * 64)[:64]}


def test_a_set_of_a_suite_counts_once_all_seeds_of_a_loss_and_of_the_baseline_are_there(
    tmp_path: Path,
) -> None:
    name = sweep(tmp_path)
    table = load_table(name)
    lines = {row.loss: row for row in table.rows if not row.control}
    for loss, column, seeds in [
        *[("infonce", "MUTAG", 5), ("adnce", "MUTAG", 4)],
        *[("infonce", "DD", 3), ("adnce", "DD", 5)],
        *[("infonce", "AIDS", 5), ("adnce", "AIDS", 5)],
    ]:
        for seed in range(seeds):
            made(
                tmp_path,
                table.places[lines[loss].name, column].work,
                seed,
                metrics={"accuracy": 70.0},
            )
    found = {one.column: one.why for one in compare(resolve(table, None, tmp_path)).places}
    assert found == {
        "MUTAG": "incomplete: 4 of 5 seeds",
        "DD": "incomplete: the baseline has 3 of 5 seeds",
        "AIDS": "",
    }


def test_a_draft_says_so_in_every_answer_and_in_errors(bench, tmp_path: Path) -> None:
    name = sweep(tmp_path, SUITE + "draft: true\n")
    said = "mine is a draft and not released: its sets may change."
    words = ["compare", name, "--results", str(tmp_path)]
    code, _, err = bench(*words)
    assert (code, said in err) == (2, True)
    record(tmp_path, name, 5, 70.0)
    assert bench(*words)[1].startswith(said)
    words = [name, "--single", "report.html", "--results", str(tmp_path)]
    assert bench("report", *words)[0] == 0
    assert Path("report.html").read_text().count(said) == 5, (
        "leaderboard and page twice, and the list"
    )
