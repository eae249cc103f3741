"""The report: what it shows, what it says of what is missing, and that nothing in it is fetched."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks import report
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.report import site, table_pages
from contrastbench.benchmarks.report.contents import read_groups, titles, view_of
from contrastbench.benchmarks.report.tables import table_markdown
from contrastbench.benchmarks.report.words import flat
from contrastbench.benchmarks.submission import reproduction
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.losses import UserError
from damaged import full_disk
from made_records import add, made, small_table
from pages import Tree, squeezed

EVIL = "<script>alert(1)</script>"
TABLE = small_table(
    title="Small & safe",
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
    for module in (site, table_pages):
        monkeypatch.setattr(module, "load_table", lambda name, **_: TABLE)
    monkeypatch.setattr(catalogue, "table_names", lambda: ["small"])
    for dataset, start in (("MUTAG", 80.0), ("DD", 70.0)):
        for seed in range(3):
            add(tmp_path, seed, start + seed, dataset=dataset)
            add(tmp_path, seed, start + 1 + 2 * seed, dataset=dataset, params={"temperature": 0.4})
            add(tmp_path, seed, start + 2 - seed, dataset=dataset, loss="adnce")
    add(tmp_path, 3, 0.0, status="diverged", details={"error": "the loss is nan"})
    add(tmp_path, 4, 0.0, status="failed", details={"error": EVIL})
    return tmp_path


def page(results: Path, *names: str) -> str:
    report.write_report(names, results, results / "report.html", single=True)
    return (results / "report.html").read_text()


def pages(results: Path, *names: str) -> dict[str, str]:
    folder = results / "report"
    report.write_report(names, results, folder)
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def links(text: str) -> list[str]:
    return [one.attrib["href"] for one in Tree(text).root.iter("a")]


def test_a_table_shows_ours_the_papers_and_what_went_wrong(filled: Path) -> None:
    found = pages(filled, "small")
    text = squeezed(found["tables/small.html"])
    assert (
        '<span class="ours">81.0</span><span class="std"> ± 1.0</span><span class="n"> n = 3</span>'
        in text
    )
    paper = '<span class="label">paper</span> 85.0 ± 0.5'
    assert f'{paper} <span class="difference down">−4.0</span>' in text, "it did not come back"
    assert "Came back: " in text
    assert "diverged (1 of 5), failed (1 of 5)</span>" in text
    assert 'class="badge">quoted</span>' in text
    assert "Small &amp; safe" in text
    about = "20 records of 6 experiments on 2 data sets, 1 diverged, 1 failed."
    assert about in squeezed(found["records/index.html"])


def test_the_first_page_lists_tables_by_paper_with_what_is_done(filled: Path) -> None:
    text = squeezed(pages(filled, "small")["index.html"])
    row = '<a href="tables/small.html">small</a> <small>Small &amp; safe</small></th>'
    answer = "Values that came back: base 0 of 1."
    assert f'{row}<td class="num">1 of 1</td><td>{answer}' in text


def test_sweep_files_of_the_results_need_no_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "title: one of mine\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n"
    (tmp_path / "one.yaml").write_text(text)
    add(tmp_path, 0, 60.0)
    monkeypatch.setattr(catalogue, "table_names", list)
    assert "</span> One of mine</h1>" in page(tmp_path)


def test_seeds_that_choose_parameters_are_never_averaged_with_results(filled: Path) -> None:
    for temperature, accuracy in ((0.5, 10.0), (0.3, 30.0)):
        for seed in (1000, 1001):
            add(filled, seed, accuracy, params={"temperature": temperature})
    text = squeezed(pages(filled, "small")["records/graph/MUTAG.html"])
    parts = text.split('id="infonce"')[1].partition("</details>")[0].split("<tbody ")[1:]
    heads = "temperature = 0.5</strong>:", "temperature = 0.3</strong>:"
    found, other = (next(part for part in parts if head in part) for head in heads)
    assert "accuracy <strong>81.00</strong> ± 1.00, 5 ok, 1 diverged" in found
    assert found.count("for tuning: not in the mean") == 2
    assert other.count("<strong>") == 1, "its title, and no mean"


def test_every_record_is_behind_its_number(filled: Path) -> None:
    """A number links its experiment: each seed's value, its file and the command to make it."""
    found = pages(filled, "small")
    behind = [one for one in links(found["tables/small.html"]) if "/records/" in one]
    numbers = [link for link in behind if "#" in link]
    assert len(numbers) == 6
    for link in numbers:
        name, _, anchor = link.removeprefix("../").partition("#")
        (part,) = re.findall(rf'<tbody id="{anchor}".*?</tbody>', found[name], re.DOTALL)
        folder = re.findall(r"<code>(runs/.*?)</code>", found[name].partition(part)[0])[-1]
        paths = sorted(filled.glob(f"{folder}/{anchor}-seed*.json"))
        assert len(paths) >= 3
        for path in paths:
            record = store.read_record(path)
            assert record["key"].startswith(anchor)
            assert record["data_hash"][:12] in part
            ok = record["status"] == "ok"
            value = f"{record['metrics']['accuracy']:.2f}" if ok else record["status"]
            assert f'">{record["seed"]}</th><td>{value}</td>' in part
        assert f"bench reproduce {anchor}-seed0" in part


def test_experiments_on_one_page_are_told_apart(tmp_path: Path) -> None:
    add(tmp_path, 0, 70.0)
    add(tmp_path, 0, 70.0, recipe={"epochs": 5})
    add(tmp_path, 0, 70.0, data_hash="1" * 64)
    found = titles(read_groups(tmp_path))
    assert sorted(re.sub("key .*", "key", title) for title, _, _ in found) == [
        "epochs = 5",
        *["key"] * 2,
    ]
    assert len({title for title, _, _ in found}) == 3
    usual = "epochs = 20, temperature = 0.5"
    assert sorted(rest for _, rest, _ in found) == [*[usual] * 2, "temperature = 0.5"]


def test_a_command_makes_a_record_again_by_its_name(filled: Path) -> None:
    text = pages(filled, "small")["records/graph/DD.html"].partition('id="adnce"')[2]
    name = re.findall(r"bench reproduce ([\w-]+)<", text)[0]
    assert reproduction.named_record(name, [filled])["dataset"] == "DD"


def test_a_try_that_failed_counts_until_its_seed_is_ok(filled: Path) -> None:
    add(filled, 4, 80.0)
    (base,) = [group for group in read_groups(filled) if "diverged" in group.statuses()]
    assert base.statuses() == {"ok": 4, "diverged": 1}
    assert [(run["seed"], run["status"]) for run, _ in base.runs][-2:] == [
        *[(4, "failed"), (4, "ok")]
    ]


def test_names_are_text_whatever_they_say(filled: Path) -> None:
    add(filled, 0, 50.0, dataset=EVIL)
    text = page(filled)
    assert EVIL not in text
    assert "default-src 'none'" in text, "and none would be run"
    texts = [(one.text or "").strip() for one in Tree(text).root.iter()]
    assert len([*Tree(text).root.iter("script")]) == 1
    assert {f"quoted {EVIL}", f"Records of {EVIL} (graph)"} <= {*texts}


def test_the_same_records_make_the_same_page(filled: Path) -> None:
    assert pages(filled, "small") == pages(filled, "small")


def test_a_named_table_brings_its_own_records_and_those_of_other_parameters(filled: Path) -> None:
    add(filled, 0, 60.0, params={"temperature": 0.9})
    add(filled, 0, 60.0, dataset="NCI1")
    everything, named = (site.read_report(names, filled).chosen for names in ([], ["small"]))
    assert {group.first["dataset"] for group in everything} == {"MUTAG", "DD", "NCI1"}
    assert {group.first["dataset"] for group in named} == {"MUTAG", "DD"}
    assert 0.9 in [group.first["params"]["temperature"] for group in named]


def test_a_table_without_records_says_so(tmp_path: Path) -> None:
    add(tmp_path, 0, 60.0, dataset="motifs")
    found = pages(tmp_path, "adnce-table5")
    assert "Nothing run yet" in found["index.html"]
    assert re.search(r'class="answer">[^<]*36[^<]*20[^<]*<', found["tables/adnce-table5.html"])
    assert "not run" in found["tables/adnce-table5.html"]


def test_a_users_sweep_is_a_table_too(tmp_path: Path) -> None:
    file = tmp_path / "mine & yours.yaml"
    file.write_text("seeds: 0-1\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce, adnce]\n")
    for seed in (0, 1):
        add(tmp_path, seed, 80.0 + seed)
        add(tmp_path, seed, 82.0 - seed, loss="adnce")
    found = pages(tmp_path, str(file))
    assert "tables/mine___yours.html" in links(found["index.html"])
    texts = {text.strip() for text in Tree(found["tables/mine___yours.html"]).root.itertext()}
    assert {"mine & yours", "Against infonce, seed by seed"} <= texts


def test_a_number_that_folds_choose_links_all_experiments_of_its_loss(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    sweep = "domains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\ntune: {trials: 2}\n"
    file.write_text(f"seeds: 0-1\n{sweep}")
    details = {"folds": [80.0, 90.0], "inner": [60.0, 70.0]}
    for trial in resolve(load_table(str(file)), None, tmp_path).cells[0].experiments:
        for seed in (0, 1):
            made(tmp_path, trial, seed, metrics={"accuracy": 1.0}, details=details)
    found = pages(tmp_path, str(file))
    assert "../records/graph/MUTAG.html#infonce" in links(found["tables/mine.html"])
    assert '<details id="infonce">' in found["records/graph/MUTAG.html"]


def edited(results: Path) -> None:
    path = add(results, 0, 80.0)
    path.write_text(path.read_text().replace("80.0", "90.0"))


@pytest.mark.parametrize(
    ("prepare", "names", "message"),
    [
        (lambda results: None, [], "no records under .*runs: bench run makes them"),
        (edited, [], "was changed after it was published"),
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
    with pytest.raises(UserError, match=message):
        report.write_report(names, tmp_path, tmp_path / "report.html", single=True)


def test_a_missing_library_gives_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in ("site", "losses"):
        monkeypatch.delitem(sys.modules, f"contrastbench.benchmarks.report.{page}")
    monkeypatch.delattr(report, "losses")
    monkeypatch.delitem(sys.modules, "latex2mathml.converter")
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    line = r'needs latex2mathml[.a-z]*, which .*: pip install "contrastbench\[report\]"'
    with pytest.raises(UserError, match=line):
        report.write_report([], tmp_path, tmp_path / "report.html")


WRITERS: dict[str, Callable[[Path], object]] = {
    "file": lambda root: report.write_report(["small"], root, root / "report", single=True),
    "folder": lambda root: report.write_report(["small"], root, root / "report"),
    "tables": lambda root: [*table_pages.write_tables(root)],
}


def read(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_leaves_the_old_page(
    filled: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], object]
) -> None:
    write(filled)
    old = read(filled)
    more = add(filled, 9, 80.0)
    monkeypatch.setattr(os, "fsync", full_disk)
    line = r"cannot write .*(report|small).* \(No space left on device\)"
    with pytest.raises(UserError, match=line):
        write(filled)
    more.unlink()
    assert read(filled) == old


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_no_kill_tears_a_page(filled: Path, write: Callable[[Path], object]) -> None:
    """Each is moved into its place whole: whoever has the old one still has it whole."""
    write(filled)
    old = read(filled)
    linked = shutil.copytree(filled, filled / "linked", copy_function=os.link)
    add(filled, 9, 80.0)
    write(filled)
    assert read(linked) == old


def test_a_folder_keeps_what_no_report_wrote(filled: Path) -> None:
    """A page of an earlier report that is no more is removed, and a file of somebody else stays."""
    pages(filled, "small")
    folder = filled / "report"
    (folder / "CNAME").write_text("mine")
    for path in (filled / "runs/graph/DD").rglob("*.json"):
        path.unlink()
    assert (folder / "records/graph/DD.html").is_file()
    found = pages(filled, "small")
    assert found["CNAME"] == "mine"
    assert not (folder / "records/graph/DD.html").exists()
    assert found["files.txt"].splitlines() == sorted(set(found) - {"CNAME", "files.txt"})


def test_a_file_of_somebody_else_is_never_replaced(filled: Path) -> None:
    folder = filled / "docs"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    with pytest.raises(UserError, match=r"docs/index.html was not written by bench report: name"):
        report.write_report(["small"], filled, folder)
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    assert (folder / "index.html").read_text() == "mine"


RESULTS = Path(__file__).parents[3] / "results"
BOLD = 25  # words of an answer


@pytest.mark.usefixtures("moment")
def test_the_committed_results_are_what_the_committed_records_give(tmp_path: Path) -> None:
    """A table that is newer than `bench table --all` need not be there."""
    (tmp_path / "runs").symlink_to(RESULTS / "runs")
    for path in RESULTS.glob("*.yaml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    made = {path.name for path in table_pages.write_tables(tmp_path)}
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
    found = table_pages.texts(view_of(resolve(load_table("standard"), None, RESULTS)))
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
