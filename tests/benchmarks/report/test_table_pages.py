"""Pages of tables: each begins with its answer, its figure and how to read it."""

from pathlib import Path

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.report.table_pages import texts, with_verdicts, write_tables
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve

RESULTS = Path(__file__).parents[3] / "results"
BOLD = 25  # words of an answer


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
        for answer in path.read_text().split("**")[1:2]:
            assert len(answer.split()) <= BOLD, (path.name, answer)


def test_a_page_of_a_paper_says_what_came_back_then_who_is_better_then_shows_it() -> None:
    shown = with_verdicts(resolve(load_table("adnce-table10"), None, RESULTS))
    page = texts(shown)[".md"].split("\n\n")
    assert page[1].startswith("**No pre-train: 1 of 7; GraphCL: 7 of 7; ADNCE: 2 of 7 printed")
    assert page[2].endswith("ADNCE against GraphCL: undecided on 7 of 7.")
    assert page[3].endswith("](adnce-table10.svg)")
    assert next(i for i, part in enumerate(page) if part.startswith("| Method")) == 5
    controls = said(compare(shown.resolved), "controls")
    assert page.index(controls[0]) > 5


def test_a_standing_comparison_has_all_of_its_answer_below_its_values() -> None:
    shown = with_verdicts(resolve(load_table("standard-2"), None, RESULTS))
    made = texts(shown)
    assert "<text" in made[".svg"]
    _, effects = made[".md"].split("| Method |")[1:]
    assert effects.startswith(" Effect, % of the training gain |")
    assert shown.verdicts is not None
    assert all(line.partition(":")[0] in effects for line in said(shown.verdicts))
    assert "decoupled, dhel" in made[".svg"], "the same runs are one line"
