"""Pages of tables: each begins with its answer, its figure and how to read it."""

import re
from pathlib import Path

import pytest

from contrastbench.benchmarks.report.contents import view_of
from contrastbench.benchmarks.report.table_pages import texts, write_tables
from contrastbench.benchmarks.report.tables import table_markdown
from contrastbench.benchmarks.report.words import flat
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve

RESULTS = Path(__file__).parents[3] / "results"
BOLD = 25  # words of an answer


@pytest.mark.usefixtures("moment")
def test_the_committed_results_are_what_the_committed_records_give(tmp_path: Path) -> None:
    """A table that is newer than `bench table --all` need not be there."""
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    for path in RESULTS.glob("*.yaml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    made = {path.name for path in write_tables(tmp_path)}
    tables = {path.stem for path in RESULTS.glob("*.csv")}
    suffixes = (".md", ".csv", ".svg")
    there = {p.name for p in RESULTS.iterdir() if p.suffix in suffixes and p.stem in tables}
    assert there <= made
    changed = [
        name for name in there if (tmp_path / name).read_bytes() != (RESULTS / name).read_bytes()
    ]
    assert changed == [], "bench table --all writes them anew"
    for path in tmp_path.glob("*.md"):
        assert "findings in the table's file are left out" not in path.read_text(), path.name
        for answer in path.read_text().split("**")[1:2]:
            assert len(answer.split()) <= BOLD, (path.name, answer)


def test_findings_stand_with_the_numbers_alone_that_they_are_on(tmp_path: Path) -> None:
    table = load_table("adnce-table5")
    (found,) = (flat(text) for text in table.findings.values())
    ours, none = (resolve(table, None, folder) for folder in (RESULTS, tmp_path))
    lines = list(entries(ours))
    assert found in flat(table_markdown(ours, lines))
    fewer, empty = table_markdown(ours, lines[:-1]), table_markdown(none, list(entries(none)))
    assert found not in flat(fewer)
    assert "findings in the table's file are left out" in fewer
    assert "findings" not in empty


@pytest.mark.usefixtures("moment")
def test_a_standing_comparison_has_all_of_its_answer_below_its_values() -> None:
    found = texts(view_of(resolve(load_table("standard"), None, RESULTS)))
    _, effects = found[".md"].split("| Method |")[1:]
    assert effects.startswith(" Effect, % of the training gain |")
    assert "\n- Controls as they must be: " in effects
    assert found["-cells.csv"].count(",infonce again,") == 20 * 16


def test_legends_and_captions_name_what_a_figure_shows_alone() -> None:
    pages = {RESULTS / f"{path.stem}.svg": path.read_text() for path in RESULTS.glob("*.md")}
    for path, page in pages.items():
        figure = path.read_text() if path.is_file() else ""
        legend = re.findall(r'<g class="(\w+)" transform="translate\(\d+,4\)">', figure)
        dots = re.findall(r'<g class="(\w+)[\w ]*" transform="translate\(0,\d+\)">', figure)
        assert {*legend} - {"printed"} <= {*dots}, path.name
        promised = re.search("95 % intervals, uncorrected|lines are two standard errors", page)
        assert bool(promised) == ('class="interval"' in figure), path.name
