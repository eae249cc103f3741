"""Names that are handed in stay texts in every file that somebody opens or posts."""

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.report import site, write_pages
from contrastbench.benchmarks.report.comparison import render_comparison
from contrastbench.benchmarks.report.table_pages import write_tables
from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.report.words import rendered
from contrastbench.benchmarks.submission.bundle import About, Bundle
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec
from made_records import made

NAMES = ("csv:r&d.csv", "csv:<svg onload=alert(1)>.csv", "csv:a\"b'.csv", "csv:]]>.csv")
ROWS = "seeds: 0-1\nlosses: [infonce, adnce]\ndomains: {{tabular: {{datasets: {0}}}}}\n"


def drawn(folder: Path, name: str) -> Mapping[str, str]:
    """Return all figures of a suite with that name and that title, as files and in the report."""
    (folder / "mine.yaml").write_text(ROWS.format(json.dumps([name, "wine"])))
    for dataset in (name, "wine"):
        for loss in ("infonce", "adnce"):
            work = Experiment("tabular", dataset, LossSpec(loss), {})
            for seed in (0, 1):
                made(folder, work, seed, metrics={"accuracy": 40.0 + seed + len(loss)})
    with one_moment():
        pages = {str(path): path.read_text() for path in write_tables(folder)}
        report = site.read_report([str(folder / "mine.yaml")], folder)
        pages |= site.render_site(report, single=False)
    return {path: text for path, text in pages.items() if path.endswith("mine.svg")}


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_xml_without_scripts(tmp_path: Path, name: str) -> None:
    figures = drawn(tmp_path, name)
    assert len(figures) == 2
    for figure in figures.values():
        root = ElementTree.fromstring(figure)
        kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert kinds <= {"svg", "title", "style", "rect", "g", "text", "path", "circle"}
        assert not [key for element in root.iter() for key in element.attrib if key[:2] == "on"]
        assert any(name[:20] in (element.text or "") for element in root.iter())


SUMMONS = (
    *("@org/team", "(@somebody)", "x\u00e9@org", "/@a", "#12", "org/repo#1", "_@a"),
    *("&#64;org/team", "&commat;org", "&#x40;a"),
)


@pytest.mark.parametrize("summons", SUMMONS)
def test_a_comment_notifies_nobody(summons: str) -> None:
    paper = f"https://example.org/{summons}"
    about = About(suite=summons, loss=f"{summons}.py:M", params={}, licence="MIT", paper=paper)
    given = Bundle(about, {summons: ""}, {}, "0" * 64)
    text = rendered("verification.md.j2", given=given, case=None)
    seen = unescape(text.replace("&#8203;", "\u200b"))  # as GitHub reads Markdown
    assert not re.search(r"(?<![a-zA-Z0-9])@\w|#\d", seen)


def resolved_table(folder: Path, name: str, row: str = "R") -> Resolved:
    """Return a table with records, of a file and a row that have such names."""
    text = ROWS.replace("adnce", "{{adnce: {{}}, name: {1}}}").format('["wine"]', json.dumps(row))
    (folder / f"{name}.yaml").write_text(text)
    for loss in ("infonce", "adnce"):
        made(folder, Experiment("tabular", "wine", LossSpec(loss), {}), 0)
    return resolve(load_table(str(folder / f"{name}.yaml")), None, folder)


FORMULAS = ("=1+1", "a;=1+1", "a; \uff1d1+1", "a\n=1+1", "a\n@SUM(1+1)", "x;y\n-1+1", ";=1+1")


@pytest.mark.parametrize("row", FORMULAS)
def test_no_cell_is_a_formula_wherever_spreadsheets_part_cells(tmp_path: Path, row: str) -> None:
    resolved = resolved_table(tmp_path, "mine", row)
    compared = render_comparison(resolved, "csv", None, False, None)
    for text in (render_table(resolved, "csv"), compared):
        assert "1+1" in text
        parted = [cell for line in text.splitlines() for cell in re.split("[,;\t]", line)]
        assert not [cell for cell in parted if re.match(r'[\s"]*([=+@\uff1d]|-[^0-9]|-1\+)', cell)]


def test_the_name_of_a_file_ends_no_label_and_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "table_names", list)
    resolved = resolved_table(tmp_path, "a b}\\input{c")
    compared = render_comparison(resolved, "latex", None, False, None)
    for text in (render_table(resolved, "latex"), compared):
        assert re.search(r"\\label\{tab:a-b--input-c[\w-]*\}\n", text)
    (page,) = [path for path in write_tables(tmp_path) if path.suffix == ".md"]
    assert re.search(r"!\[.*\]\(a%20b%7D%5Cinput%7Bc\.svg\)", page.read_text())


def test_two_tables_of_one_page_are_refused(tmp_path: Path) -> None:
    resolved_table(tmp_path, "ADNCE-Table5")
    with pytest.raises(UserError, match=r"would be adnce-table5\.md: rename"):
        list(write_tables(tmp_path))


def test_tables_whose_names_differ_by_case_have_two_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may take two such names for one: no page replaces or removes the other."""
    names = [resolved_table(tmp_path, name).table.called for name in ("Mine", "mine")]
    shown = site.read_report(names, tmp_path).shown
    assert [view.page for view in shown] == ["tables/Mine", "tables/mine-2"]
    write_pages(tmp_path, {"A.html": "old"})
    module = "contrastbench.benchmarks.report.remove_page"
    monkeypatch.setattr(module, lambda _, path: (tmp_path / "a.html").unlink(missing_ok=True))
    write_pages(tmp_path, {"a.html": "new"})
    assert (tmp_path / "a.html").read_text() == "new"


def test_names_that_differ_by_case_share_no_file_of_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that looks names up without their case keeps both, with their numbers."""
    monkeypatch.setattr(store, "file_name", str.casefold)
    works = [Experiment("tabular", one, LossSpec("infonce"), {}) for one in ("A", "a")]
    paths = [made(tmp_path, work, 0, metrics={"accuracy": i}) for i, work in enumerate(works)]
    again = [made(tmp_path, works[0], 0, loss=loss) for loss in ("Mine", "mine")]
    assert len({str(path).casefold() for path in (*paths, *again)}) == 4
    assert [store.read_record(path)["metrics"]["accuracy"] for path in paths] == [0, 1]
