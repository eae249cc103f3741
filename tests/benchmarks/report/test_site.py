"""The report's pages as anybody may open them: checks that need no browser, and a web server."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
import yaml

from contrastbench.benchmarks import report
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.report import site
from contrastbench.benchmarks.report.site import TEMPLATES
from contrastbench.losses.registry import OURS
from contrastbench.losses.spec import LossSpec
from made_records import add
from pages import LARGEST, problems

ROOT = Path(__file__).parents[3]
SWEEP = """\
title: mine
seeds: 0-1
controls: true
tune: null
losses: [none, infonce, adnce, "infonce + 0.5*dar"]
domains: {graph: {datasets: [MUTAG, DD, NCI1, PROTEINS, ENZYMES, DHFR, NCI109, PTC_FM]}}
"""


def squeezed(text: str) -> str:
    """Return a text with single spaces."""
    return re.sub(r"\s+", " ", text)


def rows_of(text: str) -> dict[str, str]:
    """Return the rows of the leaderboard by name, without line breaks."""
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
        for seed in range(2):
            add(results, seed, 40.0 + seed, dataset=dataset, loss="none")
            add(results, seed, 80.0 + seed, dataset=dataset)
            add(results, seed, 85.0 + seed + i / 4, dataset=dataset, loss="adnce")
            add(results, seed, 60.0 + seed, dataset=dataset, loss="hcl")
    add(results, 7, 0.0, status="diverged", details={"error": "the loss is nan"})
    return results


@pytest.fixture(scope="module")
def made(filled: Path) -> dict[str, str]:
    """Return the files of the report on these results."""
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


GOOD = """<!doctype html><html lang="en"><head><meta name="viewport"><meta name="color-scheme">
<title>t</title></head><body><header></header><main><h1>a</h1><h2 id="b">b</h2>
<a href="#b">b</a><table><thead><tr><th scope="col">a</th></tr></thead><tbody>
<tr><th scope="row">1</th></tr></tbody></table><svg role="img" aria-label="s"></svg>
<label><input></label></main><footer></footer></body></html>"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("<h1>a", "<h1>" + LARGEST * "a", "1000"),
        ("<h1>a", '<h1 id="b">a', "the id b is there 2 times"),
        ("<h2", "<h1>", "</h2> closes <h1>"),
        ('lang="en"', "", "no language"),
        ("<title>t", "<title> ", "no title"),
        ("<header></header>", "", "no <header>"),
        ("h2", "h3", "<h3> b after level 1"),
        ('scope="col"', "", "a table without headers of columns"),
        ('<th scope="row">1</th>', "<td>1</td>", "a row without a header"),
        ('<th scope="row">1', '<th scope="row">1</th><td>2</td><th>', "3 cells below 1 headers"),
        ('aria-label="s"', "", "a picture without words"),
        ("<label><input></label>", "<input>", "an input without a label"),
        (">b</a>", "></a>", "a link without words"),
        (
            "<label>",
            2 * '<div role="region" aria-label="r"></div>' + "<label>",
            "2 regions named r",
        ),
        ("#b", "#c", "where no such place is"),
        ("#b", "other.html", "a link to 'other.html'"),
        ("#b", "http://a.example/", "a link to 'http://a.example/'"),
    ],
)
def test_a_check_finds_what_is_wrong(old: str, new: str, problem: str) -> None:
    assert list(problems({"a.html": GOOD})) == []
    found = list(problems({"a.html": GOOD.replace(old, new)}))
    assert any(problem in one for one in found), found


def test_the_leaderboard_says_which_losses_differ_and_how_sure_that_is(
    made: dict[str, str],
) -> None:
    text = squeezed(made["index.html"])
    assert "Over 8 data sets, of 1 loss 1 is better than infonce." in text
    assert "would have been seen" in text
    rows = rows_of(text)
    assert next(iter(rows)) == "adnce"
    assert '<td class="better"' in rows["adnce"]
    assert "+15" in rows["adnce"]
    assert '<td class="control"' in rows["none"]


def test_a_loss_that_has_joined_says_so(filled: Path) -> None:
    joining = [LossSpec("hcl", {})]
    with one_moment():
        read = site.read_report([str(filled / "mine.yaml")], filled, joining)
        text = site.render_site(read, single=False)["index.html"]
    assert "hcl is worse than infonce over 8 data sets: effect -50 %" in squeezed(text)
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


def test_a_loss_has_its_formula_family_and_rows(made: dict[str, str]) -> None:
    text = made["losses/adnce.html"]
    assert "adnce: better than infonce, +15 %" in squeezed(text)
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in text
    assert 'href="https://arxiv.org/abs/2310.11048"' in text
    assert "Args:" not in text
    assert '<th scope="row"><code>sigma</code></th>' in text
    assert 'It becomes <a href="infonce.html">infonce</a>' in text
    assert '<a href="../tables/mine.html">The whole table</a>' in text
    assert "infonce + 0.5*dar" in made["losses/dar.html"], "a term of the sum in the table"


@pytest.mark.parametrize("name", OURS)
def test_every_formula_becomes_mathml(name: str) -> None:
    formulas = [block.formula for block in site.losses.description(name) if block.formula]
    assert formulas
    for formula in formulas:
        assert formula.startswith("<math ")
        assert "\\" not in formula, "a command that was not read"


# Colours

SCHEMES = ("light", "dark")
GROUNDS = ("page", "band")
MACHADO = {  # of Machado et al. 2009, in linear RGB, at full severity
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
NEAR = 30.0  # of two colours' distance, below which they are hard to tell apart
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def colours(scheme: str) -> dict[str, str]:
    """Return the colours of the style by name."""
    parts = re.findall(r":root \{(.*?)\}", (TEMPLATES / "style.css").read_text(), re.DOTALL)
    return dict(re.findall(r"--(\w+): (#\w{6})", parts[SCHEMES.index(scheme)]))


def linear(colour: str) -> Any:
    """Return the linear RGB of a colour."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: Any) -> Any:
    """Return a linear RGB in CIE's L*a*b*."""
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(one: str, other: str, kind: str) -> float:
    """Return the distance of two colours as somebody with this colour blindness sees them."""
    matrix = np.array(MACHADO[kind])
    return float(np.linalg.norm(lab(matrix @ linear(one)) - lab(matrix @ linear(other))))


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_can_be_read_on_its_ground(scheme: str) -> None:
    found = colours(scheme)
    for ground in GROUNDS:
        for ink in ("text", "muted", "accent", "up", "down", "warn"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)


@pytest.mark.parametrize("kind", MACHADO)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_colour_blind_people_tell_better_from_worse(scheme: str, kind: str) -> None:
    found = colours(scheme)
    assert apart(found["up"], found["down"], kind) > NEAR


def test_a_green_and_a_red_are_too_near() -> None:
    assert apart("#17724a", "#a23b28", "deuteranopia") < NEAR


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
    """Return the commands of tox that build the site."""
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


class Quiet(SimpleHTTPRequestHandler):
    """A web server that logs nothing."""

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def address(filled: Path, tmp_path: Path) -> Iterator[str]:
    """Serve a report below another site, as Pages does, and return the site's address."""
    report.write_report([str(filled / "mine.yaml")], filled, tmp_path / "report")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_a_web_server_serves_it_from_any_place(address: str, made: dict[str, str]) -> None:
    for name, text in made.items():
        with urlopen(f"{address}report/{name}", timeout=60) as answer:
            assert answer.read().decode() == text
    assert not re.findall(r'(?:href|src)="/', "".join(made.values())), "an address of one place"


def test_the_workflow_builds_the_site_from_the_records_on_each_push_to_main() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text())
    assert workflow[True] == {"push": {"branches": ["main"]}, "workflow_dispatch": None}
    build, deploy = workflow["jobs"]["build"]["steps"], workflow["jobs"]["deploy"]["steps"]
    runs = [step["run"] for step in build if "run" in step]
    assert runs == ["pip install tox-uv && tox -e site -- _site"]
    upload = next(step for step in build if "upload-pages-artifact" in step.get("uses", ""))
    assert upload["with"] == {"path": "_site"}
    address = next(step for step in build if "run" in step)["env"]
    assert address == {"SITE_ADDRESS": "${{ steps.pages.outputs.base_url }}"}
    ci = (ROOT / ".github/workflows/ci.yml").read_text()
    for step in (step for step in [*build, *deploy] if "uses" in step):
        name, version = step["uses"].split("@")
        assert re.fullmatch(r"v\d+", version)
        assert step["uses"] in ci or name not in ci, "two versions of one action"
    assert "http" not in (ROOT / ".github/workflows/pages.yml").read_text()
