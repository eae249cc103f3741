"""The report's pages as anybody may open them: checks that need no browser, and a web server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.report import site
from contrastbench.losses.registry import OURS
from contrastbench.losses.spec import LossSpec
from made_records import add
from pages import problems, squeezed

ROOT = Path(__file__).parents[3]
SWEEP = """\
title: mine
seeds: 0-1
controls: true
tune: null
losses: [none, infonce, adnce, "infonce + 0.5*dar"]
domains: {graph: {datasets: [MUTAG, DD, NCI1, PROTEINS, ENZYMES, DHFR, NCI109, PTC_FM]}}
"""


def rows_of(text: str) -> dict[str, str]:
    board = text[text.index('<table class="dots"') :].partition("</table>")[0]
    rows = [re.sub(r"\s+", " ", row) for row in board.split("<tr>")[2:]]
    return {re.sub(r"<[^>]*>", "", row.partition("</th>")[0]).strip(): row for row in rows}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results in which adnce is better than InfoNCE on all of eight sets."""
    results = tmp_path_factory.mktemp("results")
    (results / "mine.yaml").write_text(SWEEP)
    sets = yaml.safe_load(SWEEP)["domains"]["graph"]["datasets"]
    for i, dataset in enumerate(sets):
        about = {"dataset": dataset, "data_hash": str(i) * 64}
        for seed in range(2):
            add(results, seed, 40.0 + seed, **about, loss="none")
            add(results, seed, 80.0 + seed, **about)
            add(results, seed, 85.0 + seed + i / 4, **about, loss="adnce")
            add(results, seed, 60.0 + seed + i / 4, **about, loss="hcl")
    add(results, 7, 0.0, status="diverged", details={"error": "the loss is nan"})
    return results


@pytest.fixture(scope="module")
def made(filled: Path) -> dict[str, str]:
    with one_moment():
        return site.render_site(site.read_report([str(filled / "mine.yaml")], filled), single=False)


def test_the_pages_are_in_order(made: dict[str, str]) -> None:
    assert list(problems(made)) == []
    assert {"index.html", "tables/mine.html", "tables/mine.csv", "tables/mine.svg"} <= set(made)
    assert {"losses/adnce.html", "losses/dar.html", "records/index.html"} <= set(made)


def test_one_file_is_in_order_too(filled: Path) -> None:
    with one_moment():
        whole = site.render_site(site.read_report([str(filled / "mine.yaml")], filled), single=True)
    assert list(whole) == [""]
    assert list(problems({"mail.html": whole[""]})) == []


def test_the_leaderboard_says_which_losses_differ_and_how_sure_that_is(
    made: dict[str, str],
) -> None:
    text = squeezed(made["index.html"])
    assert "Over 8 sets of 1 domain, against infonce" in text
    assert "better: adnce (+15)" in text
    rows = rows_of(text)
    assert next(iter(rows)) == "adnce"
    assert '<td class="better"' in rows["adnce"]
    assert "+15" in rows["adnce"]
    assert '<td class="control"' in rows["none"]
    assert "% of the training gain" in text
    assert "better: adnce" in squeezed(made["tables/mine.html"])


def test_a_leaderboard_says_family_and_time_beside_the_baseline(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SWEEP)
    for dataset in yaml.safe_load(SWEEP)["domains"]["graph"]["datasets"]:
        for seed in range(2):
            for loss, seconds in (("none", 0.0), ("infonce", 4.0), ("adnce", 6.0)):
                about = {"dataset": dataset, "data_hash": dataset.ljust(64, "0"), "loss": loss}
                score = 40.0 if loss == "none" else 80.0
                details = {"seconds_training": seconds + seed}
                add(tmp_path, seed, score + seed, **about, details=details)
    with one_moment():
        read = site.read_report([str(tmp_path / "mine.yaml")], tmp_path)
        row = rows_of(site.render_site(read, single=False)["index.html"])["adnce"]
    assert 'data-family="InfoNCE"' in row
    assert '<td class="num">1.5</td></tr>' in row


def test_a_report_below_other_pages_links_them(filled: Path, made: dict[str, str]) -> None:
    assert 'href="../index.html"' not in made["index.html"]
    with one_moment():
        read = site.read_report([str(filled / "mine.yaml")], filled)
        below = site.render_site(read, single=False, home=True)
    assert 'href="../index.html">Documentation' in below["index.html"]
    assert 'href="../../index.html">Documentation' in below["tables/mine.html"]
    assert 'href="../own-loss.html"' in below["add-your-loss.html"]


def test_a_loss_that_has_joined_says_so(filled: Path) -> None:
    joining = [LossSpec("hcl", {})]
    with one_moment():
        read = site.read_report([str(filled / "mine.yaml")], filled, joining)
        text = site.render_site(read, single=False)["index.html"]
    assert "hcl: worse, under all" in squeezed(text)
    assert '<td class="worse"' in rows_of(text)["hcl joined"]


def test_a_loss_of_a_file_has_one_page(tmp_path: Path) -> None:
    """Its records name the class alone, and its row names the file."""
    (tmp_path / "own.py").write_text(
        "from contrastbench.losses import get_loss\nOwn = type(get_loss('npair'))\n"
    )
    name = f"{tmp_path}/own.py:Own"
    (tmp_path / "file.yaml").write_text(
        f"losses: [infonce, '{name}']\ndomains: {{graph: {{datasets: [MUTAG]}}}}\n"
    )
    short = LossSpec(name).complete.name
    for loss in ("infonce", short):
        add(tmp_path, 0, 80.0, dataset="MUTAG", loss=loss)
    read = site.read_report([str(tmp_path / "file.yaml")], tmp_path)
    assert short != name
    assert short not in read.losses
    assert read.losses.count(name) == 1


def test_a_leaderboard_without_decisions_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "domains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n"
    )
    add(tmp_path, 0, 80.0)
    made = site.render_site(site.read_report([str(tmp_path / "mine.yaml")], tmp_path), single=False)
    assert 'class="dots"' not in made["index.html"]
    assert "tables/mine.html" in made["index.html"]


@pytest.mark.parametrize("room", [0, 1, 2, 9])
def test_pages_have_what_stands_behind_numbers_and_others_while_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("domains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n")
    add(tmp_path, 0, 80.0)
    for seed in range(2):
        add(tmp_path, seed, 70.0, params={"temperature": 0.07})
    monkeypatch.setattr(site, "MOST_RECORDS", room)
    pages = site.render_site(site.read_report([str(path)], tmp_path), single=False)
    assert "80.00" in pages["records/graph/MUTAG.html"]
    assert ("0.07" in pages["records/graph/MUTAG.html"]) == (room > 2)
    assert ("Pages list the 1 experiments" in pages["records/index.html"]) == (room <= 2)


def test_a_loss_has_its_formula_family_and_rows(made: dict[str, str]) -> None:
    text = made["losses/adnce.html"]
    assert "adnce: better, under all" in squeezed(text)
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in text
    assert 'href="https://arxiv.org/abs/2310.11048"' in text
    assert "Args:" not in text
    assert '<th scope="row">sigma</th>' in text
    assert 'It becomes <a href="infonce.html">infonce</a>' in text
    assert 'Numbers of it stand in <a href="../tables/mine.html">mine</a>.' in text


@pytest.mark.parametrize("name", OURS)
def test_every_formula_becomes_mathml(name: str) -> None:
    formulas = [block.formula for block in site.losses.description(name) if block.formula]
    assert formulas
    for formula in formulas:
        assert formula.startswith("<math ")
        assert "\\" not in formula, "a command that was not read"


# The shipped records, and the web


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the command of the site writes from the records of the repository."""
    folder = tmp_path_factory.mktemp("site") / "report"
    words = site_commands()[1].replace("{posargs:{env_tmp_dir}/site}", str(folder.parent)).split()
    assert words[:2] == ["bench", "report"]
    subprocess.run(
        [sys.executable, "-m", "contrastbench", *words[1:]], cwd=ROOT, check=True, timeout=600
    )
    return folder


def site_commands() -> list[str]:
    part = (ROOT / "tox.ini").read_text().partition("[testenv:site]")[2].partition("[testenv")[0]
    return [line.strip() for line in part.partition("commands =")[2].splitlines() if line.strip()]


def test_the_shipped_records_make_pages_in_order(published: Path) -> None:
    paths = (path for path in published.rglob("*") if path.is_file())
    files = {path.relative_to(published).as_posix(): path.read_text() for path in paths}
    assert list(problems(files)) == []
    assert 'class="dots"' in files["index.html"]
    assert len(files) <= 300
    assert sum(map(len, files.values())) <= 10e6
    assert len([name for name in files if name.startswith("losses/")]) >= len(OURS)
