"""Pages of tables: a comparison with controls begins with its answer, its figure and effects."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.formats import answer_text
from contrastbench.benchmarks.comparison.markdown import effects_text
from contrastbench.benchmarks.report import table_pages
from contrastbench.benchmarks.report.plots import described
from contrastbench.benchmarks.report.table_pages import compared, opening, write_tables
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


def found_in(results: Path, name: str) -> table_pages.Compared:
    found = compared(resolve(load_table(name), None, results))
    assert found
    return found


def test_a_page_begins_with_the_answer_a_line_for_each_part() -> None:
    found = found_in(RESULTS, "standard-2")
    answer, *rest = opening(found)
    lines = answer.split("\n")
    assert 3 <= len(lines) <= 10
    assert all(line.startswith("- ") for line in lines)
    assert " ".join(line[2:] for line in lines) == answer_text(found.resolved)
    assert sum(part.startswith("| Method | Effect, % of the training gain |") for part in rest) == 1


def test_a_table_without_controls_or_without_records_has_no_answer(tmp_path: Path) -> None:
    assert compared(resolve(load_table("adnce-table10"), None, RESULTS)) is None
    assert compared(resolve(load_table("standard-2"), None, tmp_path)) is None


def test_a_figure_is_drawn_once_and_again_where_the_effects_differ(tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    found = found_in(tmp_path, "standard-2")
    assert not any("![" in part for part in opening(found))
    assert list(table_pages.draw_figure(found)) == [found.figure]
    assert described(found.figure.read_text()) == effects_text(found.base, found.over)
    assert f"]({found.figure.name})" in list(opening(found))[1]
    assert list(table_pages.draw_figure(found)) == []
    other = found._replace(base="another")
    assert list(table_pages.draw_figure(other)) == [found.figure]


def test_tables_are_written_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    monkeypatch.setattr(table_pages, "find_spec", lambda name: None)
    assert list(table_pages.draw_figure(found_in(tmp_path, "standard-2"))) == []
