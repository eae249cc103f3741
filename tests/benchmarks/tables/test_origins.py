"""Which records of an own table came with contrastbench, and which are the user's own."""

import shutil
from pathlib import Path

import pytest

from contrastbench.benchmarks.records.merge import merge_records
from contrastbench.benchmarks.report import comparison, site
from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.tables import origins
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from made_records import add

SWEEP = """
seeds: 0-3
domains:
  graph: {datasets: [MUTAG, PROTEINS]}
losses: [infonce, adnce, hcl]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results beside shipped ones of InfoNCE and, on one set, of ADNCE."""
    shipped = tmp_path / "shipped"
    monkeypatch.setattr(origins, "SHIPPED", shipped)
    for seed in range(3):
        add(shipped, seed, 80.0, dataset="MUTAG")
        add(shipped, seed, 70.0, dataset="PROTEINS")
    add(shipped, 0, 81.0, "adnce", dataset="MUTAG")
    (tmp_path / "my.yaml").write_text(SWEEP)
    return tmp_path / "own"


def resolved(own: Path, results: Path | None = None) -> Resolved:
    return resolve(load_table(str(own.parent / "my.yaml")), None, results or own)


def test_own_records_are_told_from_shipped_ones(own: Path) -> None:
    merge_records([own.parent / "shipped"], own)
    add(own, 3, 80.0, dataset="MUTAG")
    for dataset in ("MUTAG", "PROTEINS"):
        for seed in (1, 2, 3):
            add(own, seed, 82.0, "adnce", dataset=dataset)
            add(own, seed, 82.0, "hcl", dataset=dataset)
    line = "7 of 20 records came with contrastbench, all others were run or merged by you."
    found = resolved(own)
    assert line in render_table(found, "md")
    for width in (None, 70):
        shown = comparison.render_comparison(found, "md", width=width)
        assert line in " ".join(shown.split())
    report = site.read_report([str(own.parent / "my.yaml")], own)
    assert site.render_site(report, single=True)[""].count(line) == 1


def test_an_empty_folder_is_told_where_records_come_from(own: Path, bench) -> None:
    words = ("table", str(own.parent / "my.yaml"), "--results", str(own))
    line = f"no records of {words[1]} in {own}: bench sweep {words[1]} makes them"
    shipped = ", bench merge --shipped adds those that come with contrastbench\n"
    assert bench(*words)[2] == line + shipped
    shutil.rmtree(own.parent / "shipped")
    assert bench(*words)[2] == line + "\n"
    add(own, 0, 80.0, dataset="MUTAG")
    assert bench(*words)[2] == ""


def test_one_part_alone_has_no_sentence(own: Path) -> None:
    add(own, 0, 80.0, dataset="MUTAG", seconds=7.0)  # the user's own run of a shipped cell
    assert origins.shipped(resolved(own)) == (0, 1)
    merge_records([own.parent / "shipped"], own.parent / "copy")
    assert origins.shipped(resolved(own, own.parent / "copy")) == (7, 7)
    assert origins.shipped(resolved(own, own.parent / "shipped")) == (0, 0), "they are the shipped"
    assert "came with" not in render_table(resolved(own, own.parent / "copy"), "md")


def test_a_loss_that_was_edited_since_it_ran_is_named(
    own: Path, monkeypatch: pytest.MonkeyPatch, bench
) -> None:
    monkeypatch.chdir(own.parent)
    text = "from contrastbench.losses.library.infonce import InfoNCE\n\nclass Mine(InfoNCE): pass\n"
    Path("mine.py").write_text(text)
    Path("my.yaml").write_text(SWEEP.replace("hcl", "mine.py:Mine"))
    assert not origins.edited(resolved(own)), "it has not run"
    path = add(own, 0, 80.0, "mine.py:Mine")
    assert not origins.edited(resolved(own))
    with Path("mine.py").open("a") as file:
        file.write("# edited\n")
    said = "mine.py:Mine: edited after the records were made, which do not count."
    assert origins.edited(resolved(own)) == ["mine.py:Mine"]
    assert said in bench("table", "my.yaml", "--results", str(own))[1]
    assert said in bench("compare", "my.yaml", "--results", str(own))[2]
    path.unlink()
    assert not origins.edited(resolved(own))
