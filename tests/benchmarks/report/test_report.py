"""Tests of the report.

What it shows, what it says of what is missing, and that nothing in it is run or fetched.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from contrastbench.benchmarks import report
from contrastbench.benchmarks.comparison.statistics import Ranking
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.report import contents, plots
from contrastbench.benchmarks.report.groups import POINTS, read_groups, thinned
from contrastbench.benchmarks.report.page import with_minus
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import UserError
from made_records import ENVIRONMENT, add

EVIL = "<script>alert(1)</script>"
TABLE = Table(
    name="small",
    title="Small & safe",
    source="s",
    decimals=1,
    domain="graph",
    metric="accuracy",
    columns={"A": {"dataset": "MUTAG"}, "B": {"dataset": "DD"}},
    rows=[
        {"name": f"quoted {EVIL}", "paper": {"A": [80.0]}},
        {"name": "base", "loss": "infonce", "paper": {"A": [85.0, 0.5]}},
        {"name": "warm", "loss": "infonce", "params": {"temperature": 0.4}},
        {"name": "new", "loss": "adnce"},
    ],
)


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of three rows on two sets, two of a diverged and a failed try among them."""
    monkeypatch.setattr(contents, "load", lambda name, **_: TABLE)
    monkeypatch.setattr(catalogue, "names", lambda: ["small"])
    for dataset, start in (("MUTAG", 80.0), ("DD", 70.0)):
        for seed in range(3):
            add(tmp_path, seed, start + seed, dataset=dataset)
            add(tmp_path, seed, start + 1 + 2 * seed, dataset=dataset, params={"temperature": 0.4})
            add(tmp_path, seed, start + 2 - seed, dataset=dataset, loss="adnce")
    add(tmp_path, 3, 0.0, status="diverged", details={"error": "the loss is nan"})
    add(tmp_path, 4, 0.0, status="failed", details={"error": EVIL})
    return tmp_path


def page(results: Path, *names: str) -> str:
    """Write the report and return its text."""
    report.write(names, results, results / "report.html")
    return (results / "report.html").read_text()


class Outline(HTMLParser):
    """The tags of a page, with the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.tags[-1][0] if self.tags else "", data.strip()))

    def data(self) -> dict[str, Any]:
        """What the script reads."""
        i = next(i for i, (tag, a) in enumerate(self.tags) if a.get("id") == "data")
        assert self.tags[i][0] == "script"
        return dict(
            json.loads(
                next(text for tag, text in self.texts if tag == "script" and text.startswith("{"))
            )
        )


def test_a_table_shows_ours_the_papers_and_what_went_wrong(filled: Path) -> None:
    text = re.sub(r"\s+", " ", page(filled))
    assert (
        '<span class="ours">81.0</span><span class="std"> ± 1.0</span><span class="n"> n = 3</span>'
        in text
    )
    paper = '<span class="label">paper</span> 85.0 ± 0.5'
    assert f'{paper} <span class="difference down">−4.0</span>' in text, "it did not come back"
    assert "By mean and trimmed mean: " in text
    assert "diverged (1 of 5), failed (1 of 5)</span>" in text
    assert "20 records of 6 experiments: 18 ok, 1 diverged, 1 failed" in text
    assert 'class="badge">quoted</span>' in text
    assert "Small &amp; safe" in text


def test_notes_keep_their_paragraphs(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = TABLE.model_copy(update={"notes": "First.\n\nSecond."})
    monkeypatch.setattr(contents, "load", lambda name, **_: noted)
    text = page(filled)
    assert '<p class="source">First.</p>\n<p class="source">Second.</p>\n' in text


def test_the_best_of_a_column_is_marked(filled: Path) -> None:
    text = re.sub(r"\s+", " ", page(filled))
    assert '<span class="ours best">83.0</span>' in text
    assert text.count('class="ours best"') == 2, "one on each set"
    assert text.count("How to read") == 1


def test_costs_are_means_over_the_columns_that_all_fill(filled: Path) -> None:
    (shown,) = contents.choose(["small"], filled, read_groups(filled))
    assert shown.costs == [("base", 2.0, 76.0), ("warm", 2.0, 78.0), ("new", 2.0, 76.0)]


def test_plots_are_files_too(filled: Path) -> None:
    folder = filled / "plots"
    report.write(["small"], filled, filled / "report.html", folder)
    names = {path.name for path in folder.iterdir()}
    some = ("differences", "ranks", "costs")
    assert {f"small-{name}.{suffix}" for name in some for suffix in ("svg", "pdf")} <= names
    assert (folder / "small-ranks.pdf").read_bytes().startswith(b"%PDF")


def test_sweep_files_of_the_results_and_of_here_need_no_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, results = tmp_path / "here", tmp_path / "results"
    for folder, title in ((here, "one of mine"), (results, "another of mine")):
        folder.mkdir()
        text = f"title: {title}\ndomains: {{graph: {{datasets: [MUTAG]}}}}\nlosses: [infonce]\n"
        (folder / f"{title[:3]}.yaml").write_text(text)
    (here / "compose.yaml").write_text("services: {losses: 3}\n")
    monkeypatch.chdir(here)
    add(results, 0, 60.0)
    text = page(results)
    assert "</span> one of mine</h2>" in text
    assert "</span> another of mine</h2>" in text


def test_failures_are_listed(filled: Path) -> None:
    for seed in range(2):
        add(filled, seed, 0.0, dataset="NCI1", loss="adnce", status="diverged")
    text = re.sub(r"\s+", " ", page(filled))
    assert '<a href="#failures">Failures</a>' in text
    row = "<td>3</td><td>diverged</td><td>the loss is nan</td>"
    assert row in text
    assert "adnce" in text.split('id="failures"')[1].split("<td>0, 1</td><td>diverged</td>")[0]


def test_seeds_that_choose_parameters_are_never_averaged_with_results(filled: Path) -> None:
    for temperature, accuracy in ((0.5, 10.0), (0.4, 20.0), (0.3, 30.0)):
        for seed in (1000, 1001):
            add(filled, seed, accuracy, params={"temperature": temperature})
    groups = read_groups(filled)
    by_t = {
        g.first["params"]["temperature"]: g
        for g in groups
        if "DD" not in str(g.folder) and g.first["loss"] == "infonce"
    }
    assert (by_t[0.5].scores(), by_t[0.5].scores(tuning=True)) == ([80, 81, 82], [10, 10])
    shown = {
        g["params"]["temperature"]: g
        for g in Outline(page(filled)).data()["groups"]
        if (g["dataset"], g["loss"]) == ("MUTAG", "infonce")
    }
    assert (shown[0.5]["mean"], shown[0.5]["n"], shown[0.5]["tuning"]) == (81.0, 3, [1000, 1001])
    assert (shown[0.3]["mean"], shown[0.3]["n"]) == (None, 0)
    found = {what.tuning: what for what in plots.sensitivities(by_t.values())}
    assert found[False].lines[0].mean == [83.0, 81.0]
    assert found[True].lines[0].mean == [30.0, 20.0, 10.0]
    assert found[True].title.endswith(", tuning seeds")


def test_tuning_seeds_are_those_of_the_tables(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.model_copy(update={"tune": Tune(seeds=[2])})
    monkeypatch.setattr(contents, "load", lambda name, **_: table)
    groups = read_groups(filled)
    contents.choose(["small"], filled, groups)
    assert {tuple(sorted(group.tuning)) for group in groups} == {(2,)}


def test_comparisons_and_ranks_are_on_the_page(filled: Path) -> None:
    text = re.sub(r"\s+", " ", page(filled))
    assert "Against base, seed by seed" in text
    assert "3 pairs cannot give less than 0.25" in text
    assert "Holm: p of the t test over all 4 comparisons" in text
    assert 'aria-label="Average ranks, best first: warm 1.00, ' in text


def test_a_row_has_a_cell_for_each_heading(filled: Path) -> None:
    tables = re.findall(r"<table.*?</table>", page(filled), re.DOTALL)
    assert len(tables) > 5
    for table in tables:
        head, *rows = [
            len(re.findall(r"<t[hd][ >]", row))
            for row in table.split("<tr")[1:]
            if "colspan" not in row
        ]
        assert set(rows) <= {head}, table[:500]


def test_every_record_is_behind_its_number(filled: Path) -> None:
    outline = Outline(page(filled))
    found = outline.data()
    groups = {group["number"]: group for group in found["groups"]}
    buttons = [
        a for tag, a in outline.tags if tag == "button" and "place" in (a.get("class") or "")
    ]
    assert len(buttons) == 6
    base = groups[int(buttons[0]["data-groups"] or "")]
    assert (base["loss"], base["dataset"], base["n"], base["mean"]) == ("infonce", "MUTAG", 3, 81.0)
    assert base["statuses"] == [["ok", 3], ["diverged", 1], ["failed", 1]]
    assert [run["seed"] for run in base["runs"] if run["status"] == "ok"] == [0, 1, 2]
    assert base["runs"][0]["loss"] == [[1, 3.0], [2, 2.0], [3, 1.0]]
    for group in groups.values():
        for run in group["runs"]:
            record, about = store.read(filled / run["path"]), found["environments"]
            assert (group["key"], group["data_hash"]) == (record["key"], record["data_hash"])
            assert about[run["environment"]]["commit"] == record["environment"]["commit"]
    assert found["environments"] == [ENVIRONMENT]


def test_a_try_that_failed_counts_until_its_seed_is_ok(filled: Path) -> None:
    add(filled, 4, 80.0)
    base = next(
        group
        for group in Outline(page(filled)).data()["groups"]
        if ["diverged", 1] in group["statuses"]
    )
    assert base["statuses"] == [["ok", 4], ["diverged", 1]]
    assert [(run["seed"], run["status"]) for run in base["runs"]][-2:] == [(4, "failed"), (4, "ok")]


def test_names_are_text_whatever_they_say(filled: Path) -> None:
    add(filled, 0, 50.0, dataset=EVIL)
    text = page(filled)
    outline = Outline(text)
    assert EVIL not in text
    assert len([tag for tag, _ in outline.tags if tag == "script"]) == 2
    assert f"quoted {EVIL}" in [data for _, data in outline.texts]
    assert EVIL in [group["dataset"] for group in outline.data()["groups"]]


def test_nothing_is_fetched(filled: Path) -> None:
    outline = Outline(page(filled))
    links = [
        value
        for _, a in outline.tags
        for name, value in a.items()
        if name in ("src", "href", "xlink:href")
    ]
    assert links
    assert all(link and link.startswith(("#", "data:")) for link in links)
    policy = next(a for _, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_headings_labels_and_buttons_are_there_for_everybody(filled: Path) -> None:
    tags = Outline(page(filled)).tags
    assert {"header", "nav", "main", "footer", "h1", "h2"} <= {tag for tag, _ in tags}
    assert all(
        a.get("aria-label") for tag, a in tags if tag in ("svg", "nav") or a.get("role") == "region"
    )
    assert all("aria-expanded" in a for tag, a in tags if tag == "button" and "data-groups" in a)
    ids = [
        a["id"]
        for _, a in tags
        if "id" in a and not re.fullmatch(r"[mp][0-9a-f]{10}", a["id"] or "")
    ]
    assert len(ids) == len(set(ids))


def test_the_same_records_make_the_same_page(filled: Path) -> None:
    assert page(filled) == page(filled)


def test_a_named_table_brings_its_own_records_and_those_of_other_parameters(filled: Path) -> None:
    add(filled, 0, 60.0, params={"temperature": 0.9})
    add(filled, 0, 60.0, dataset="NCI1")
    everything = Outline(page(filled)).data()["groups"]
    named = Outline(page(filled, "small")).data()["groups"]
    assert {group["dataset"] for group in everything} == {"MUTAG", "DD", "NCI1"}
    assert {group["dataset"] for group in named} == {"MUTAG", "DD"}
    assert 0.9 in [group["params"]["temperature"] for group in named]


def test_a_table_without_records_is_shown_if_it_is_named(tmp_path: Path) -> None:
    add(tmp_path, 0, 60.0, dataset="motifs")
    assert "adnce-table5" not in page(tmp_path)
    assert "not run" in page(tmp_path, "adnce-table5")


def test_a_users_sweep_is_a_table_too(tmp_path: Path) -> None:
    file = tmp_path / "mine & yours.yaml"
    file.write_text("seeds: 0-1\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce, adnce]\n")
    for seed in (0, 1):
        add(tmp_path, seed, 80.0 + seed)
        add(tmp_path, seed, 82.0 - seed, loss="adnce")
    outline = Outline(page(tmp_path, str(file)))
    assert [a["href"] for tag, a in outline.tags if tag == "a"][1] == "#table-1"
    assert "mine & yours" in [text for _, text in outline.texts]
    assert "Against infonce, seed by seed" in [text for _, text in outline.texts]


def test_curves_are_thinned_and_keep_their_ends() -> None:
    short = [[1.0, 2.0], [2.0, 1.0]]
    assert thinned(short) == short
    assert thinned([]) == []
    thin = thinned([(i, i / 3) for i in range(1, 1001)])
    assert len(thin) <= POINTS + 1
    assert (thin[0], thin[-1]) == ([1, 0.33333], [1000, 333.33])
    assert thinned([(1, 2.0)]) == [[1, 2.0]]


def test_sensitivity_holds_everything_else(tmp_path: Path) -> None:
    for temperature, accuracy in ((0.1, 70.0), (0.2, 80.0), (0.4, 60.0)):
        for seed in range(2):
            add(tmp_path, seed, accuracy + seed, params={"temperature": temperature})
    add(
        tmp_path, 0, 99.0, params={"temperature": 0.8}, recipe={"epochs": 5}
    )  # differs in two settings
    add(tmp_path, 0, 50.0, params={"temperature": 0.1}, recipe={"epochs": 3})
    found = {what.setting: what for what in plots.sensitivities(read_groups(tmp_path))}
    assert set(found) == {"temperature", "recipe.epochs"}
    (line,) = found["temperature"].lines
    assert (line.x, line.mean, line.n) == ([0.1, 0.2, 0.4], [70.5, 80.5, 60.5], [2, 2, 2])
    assert line.std == pytest.approx([0.5**0.5] * 3)
    (line,) = found["recipe.epochs"].lines
    assert (line.x, line.mean, line.held["temperature"]) == ([3, 20], [50.0, 70.5], 0.1)


def test_sensitivity_keeps_other_data_apart(tmp_path: Path) -> None:
    add(tmp_path, 0, 70.0, params={"temperature": 0.1})
    add(tmp_path, 0, 70.0, params={"temperature": 0.2}, data_hash="1" * 64)
    assert list(plots.sensitivities(read_groups(tmp_path))) == []


def test_lines_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    for mu in (0.3, 0.7):
        for temperature in (0.1, 0.2):
            add(tmp_path, 0, 70.0, loss="adnce", params={"mu": mu, "temperature": temperature})
    found = {what.setting: what for what in plots.sensitivities(read_groups(tmp_path))}
    assert [found["temperature"].label(line) for line in found["temperature"].lines] == [
        "mu=0.3",
        "mu=0.7",
    ]
    assert len(found["mu"].lines) == 2


def test_plots_are_in_the_pages_colour_and_say_what_they_show(tmp_path: Path) -> None:
    for temperature in (0.01, 0.2):
        add(tmp_path, 0, 70.0, params={"temperature": temperature})
    (what,) = plots.sensitivities(read_groups(tmp_path))
    for drawing in (
        plots.cost_plot([("a $b$", 1.0, 80.0), (EVIL, 20.0, 81.0)], "accuracy"),
        plots.sensitivity_plot(what),
        plots.critical_difference(
            ["a $b$", EVIL, "c"], Ranking([1.0, 2.0, 3.0], 9, 9.0, 0.01, 1.1)
        ),
    ):
        drawn = drawing.svg()
        root = ElementTree.fromstring(drawn)
        assert root.get("role") == "img"
        assert len(root.get("aria-label") or "") > 20
        assert "currentColor" in drawn
        assert "#000000" not in drawn
        assert "<style" not in drawn
        assert "metadata" not in drawn
        assert EVIL not in drawn


def test_the_diagram_names_every_method_with_its_rank() -> None:
    drawn = plots.critical_difference(
        ["a $b$", EVIL, "c"], Ranking([1.0, 2.0, 3.0], 9, 9.0, 0.01, 1.1)
    ).svg()
    root = ElementTree.fromstring(drawn)
    texts = ["".join(text.itertext()) for text in root.iter(f"{plots.SVG}text")]
    assert {"a $b$  1.00", f"{EVIL}  2.00", "c  3.00", "critical difference 1.10"} <= set(texts)
    assert (
        "Joined: a $b$ and <script>alert(1)</script>; <script>alert(1)</script> and c."
        in root.get("aria-label", "")
    )


def test_signs() -> None:
    assert [with_minus(x, 1) for x in (1.0, -1.0, 0.04, -0.04, 0.0)] == [
        "+1.0",
        "−1.0",
        "0.0",
        "0.0",
        "0.0",
    ]


def edited(results: Path) -> None:
    path = add(results, 0, 80.0)
    path.write_text(path.read_text().replace("80.0", "90.0"))


@pytest.mark.parametrize(
    ("prepare", "names", "message"),
    [
        (lambda results: None, [], "no records under .*runs: bench run makes them"),
        (edited, [], "was changed after it was published"),
        (
            lambda results: add(results, 0, 80.0),
            ["adnce-tabel5"],
            "unknown table 'adnce-tabel5': did you mean",
        ),
        (
            lambda results: (add(results, 0, 80.0), (results / "report.html").mkdir()),
            [],
            "cannot write .*report.html",
        ),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, prepare: Callable[[Path], Any], names: list[str], message: str
) -> None:
    prepare(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        report.write(names, tmp_path, tmp_path / "report.html")
    assert "\n" not in str(caught.value)


def test_a_missing_library_gives_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "contrastbench.benchmarks.report.page")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        UserError,
        match=r'needs jinja2, which is not installed: pip install "contrastbench\[report\]"',
    ):
        report.write([], tmp_path, tmp_path / "report.html")


def test_a_full_disk_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    add(tmp_path, 0, 80.0)
    page = tmp_path / "report.html"
    page.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*report.html \(No space left on device\)"):
        report.write([], tmp_path, page)
    assert page.read_text() == "old"
    assert not list(tmp_path.glob(".*"))


def test_a_table_names_its_command_and_what_its_records_took(filled: Path) -> None:
    text = re.sub(r"\s+", " ", page(filled))
    device = ENVIRONMENT["device"]
    assert (
        f"Behind these numbers are 20 records, which took 0.0 hours, as recorded, on {device}; "
        "bench sweep small makes them." in text
    )


def test_columns_that_say_nothing_are_named_and_left_out(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {**TABLE.model_dump()["columns"], "C": {"dataset": "NCI1"}}
    wider = Table(**{**TABLE.model_dump(exclude_unset=True), "columns": columns})
    monkeypatch.setattr(contents, "load", lambda name, **_: wider)
    text = page(filled)
    assert "Not run yet: C." in text
    assert 'data-sort="number">B</button>' in text
    assert 'data-sort="number">C</button>' not in text
