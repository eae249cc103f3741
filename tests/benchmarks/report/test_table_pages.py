"""Pages of tables: a comparison with controls begins with its answer, its figure and effects."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.verdicts import Verdicts, compare
from contrastbench.benchmarks.report import table_pages
from contrastbench.benchmarks.report.plots import described
from contrastbench.benchmarks.report.table_pages import opening, write_tables
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve

RESULTS = Path(__file__).parents[3] / "results"
FIGURES = sorted(RESULTS.glob("*-effects.svg"))


def test_the_committed_results_are_what_the_committed_records_give(tmp_path: Path) -> None:
    """A table that is newer than `bench table --all` need not be there."""
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    for path in (*RESULTS.glob("*.yaml"), *FIGURES):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    made = {path.name for path in write_tables(tmp_path)}
    tables = {path.name for path in RESULTS.iterdir() if path.suffix in (".md", ".csv")}
    there = tables - {"README.md"}
    assert there <= made
    changed = [
        name for name in there if (tmp_path / name).read_bytes() != (RESULTS / name).read_bytes()
    ]
    drawn = [name for name in made if name.endswith(".svg")]
    assert [*changed, *drawn] == [], "bench table --all writes them anew"
    assert FIGURES


def found_in(results: Path, name: str) -> Verdicts:
    return compare(resolve(load_table(name), None, results))


def test_a_page_begins_with_the_answer_a_line_for_each_part() -> None:
    found = found_in(RESULTS, "standard-2")
    answer, *rest = opening(found, RESULTS / "none.svg")
    lines = answer.split("\n")
    assert 3 <= len(lines) <= 10
    assert all(line.startswith("- ") for line in lines)
    assert " ".join(line[2:] for line in lines) == " ".join(said(found))
    assert sum(part.startswith("| Method | Effect, % of the training gain |") for part in rest) == 1


def test_a_figure_is_drawn_once_and_again_where_the_effects_differ(tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    found, figure = found_in(tmp_path, "standard-2"), tmp_path / "effects.svg"
    assert not any("![" in part for part in opening(found, figure))
    assert list(table_pages.draw_figure(found, figure)) == [figure]
    assert described(figure.read_text()) == said(found, "effects")[0]
    assert "](effects.svg)" in list(opening(found, figure))[1]
    assert list(table_pages.draw_figure(found, figure)) == []
    assert list(table_pages.draw_figure(replace(found, base="another"), figure)) == [figure]


def test_tables_are_written_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    monkeypatch.setattr(table_pages, "find_spec", lambda name: None)
    assert list(table_pages.draw_figure(found_in(tmp_path, "standard-2"), tmp_path / "a.svg")) == []


def test_a_script_without_this_package_computes_the_same_numbers() -> None:
    script = RESULTS.parent / "examples" / "recompute_standard.py"
    assert not re.search("^(import|from) contrastbench", script.read_text(), re.MULTILINE)
    words = [sys.executable, str(script), str(RESULTS), "standard-2"]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    computed = {line[:20].strip(): line for line in out.splitlines()}
    over = found_in(RESULTS, "standard-2").over
    for one in (one for one in over.effects if not one.is_copy):
        line = computed[one.row]
        assert f"{one.estimate:+.2f}" in line
        for name, part in one.parts.items():
            half = (part.interval[1] - part.interval[0]) / 2
            star = "*" * (name in one.decided and not one.control)
            assert f"{name} {part.estimate:+.2f} ± {half:.2f}{star}" in line
            assert star or f"± {half:.2f}*" not in line.partition(name)[2].partition(",")[0]
