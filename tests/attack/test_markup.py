"""Names that are handed in stay texts in every file that somebody opens or posts."""

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.report import site
from contrastbench.benchmarks.report.table_pages import write_tables
from contrastbench.benchmarks.report.words import rendered
from contrastbench.benchmarks.submission.bundle import About, Bundle
from contrastbench.losses.spec import LossSpec
from made_records import made

pytest.importorskip("matplotlib")
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
