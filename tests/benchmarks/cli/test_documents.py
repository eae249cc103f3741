"""What README and docs/ show: commands do what they are shown for, and links lead somewhere."""

import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import contrastbench as cb
from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses.laws import check_loss
from loss_numbers import HEAD, WRITE, families

ROOT = Path(__file__).parents[3]
AGENTS = ROOT / "AGENTS.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STANDING = ROOT / "results" / f"{load_table('standard').name}.md"  # none while it is a draft
FINDINGS = sorted((ROOT / "results").rglob("README.md"))
# minutes long, and run for real by tests of their own: here their words are read alone
READ_ALONE = {"sweep", "check", "check-loss", "check-domain", "check-device", "perf", "report"}
READ_ALONE |= {"reproduce", "submit", "verify"}
# what a reader brings: data, a network, records, packages
BROUGHT = (
    *("is not installed: pip install", "PATH", "FOLDER", "KEY", "DATA", "DIR", "http", "download"),
    *("hub", "run more"),
)
ADDED = {
    "run": ["--tiny"],
    **{name: ["--results", str(ROOT / "results")] for name in ("compare", "plan", "table")},
}
Bench = Callable[..., tuple[int, str, str]]


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        if page.name in ("own-data.md", "own-domain.md"):
            continue  # test_own_data.py and test_audio.py run what they show
        for text in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL):
            yield page.name, text


def commands() -> list[tuple[str, ...]]:
    """What is shown of `bench`, each once, without comments."""
    shown = dict.fromkeys(
        tuple(shlex.split(line, comments=True))
        for _, text in blocks("bash")
        for line in text.replace("\\\n", " ").splitlines()
        if line.startswith("bench ")
    )
    return [words for words in shown if not set(words) & {"&&", "...", "|"}]


def files() -> dict[str, str]:
    """The pages' files, which begin with a comment that names them."""
    found: dict[str, str] = {}
    for language in ("python", "yaml"):
        for page, text in blocks(language):
            if name := re.match(r"# (\S+\.(?:py|yaml))\n", text):
                found[f"{page} {name[1]}"] = text
    return found


@pytest.fixture
def reader(tmp_path: Path) -> None:
    """A folder in which a reader has written the first page's files, and no network."""
    for key, text in reversed(files().items()):
        (tmp_path / key.split()[1]).write_text(text)
    (tmp_path / "data").mkdir()


@pytest.mark.filterwarnings("ignore:the loss .* is")  # which an alias says
@pytest.mark.parametrize("words", commands(), ids=" ".join)
@pytest.mark.usefixtures("reader", "offline")
def test_a_command_does_what_it_is_shown_for(words: tuple[str, ...], bench: Bench) -> None:
    """Or it ends at data that the reader is to bring, and says so in one line."""
    name, *rest = words[1:]
    if READ_ALONE & set(words) or words[1:3] == ("compare", "standard"):  # findings compare it
        read(name, rest)
        return
    code, out, said = bench(name, *rest, *ADDED.get(name, []))
    lacking = 1 if name == "data" else 2  # what cannot be fetched stops no other set
    told = any(word in f"{words} {out} {said}" for word in BROUGHT)
    assert code == 0 or (code == lacking and told), said


def read(name: str, rest: list[str]) -> None:
    command = get_command(app).commands[name]
    while subcommands := getattr(command, "commands", {}):
        command, *rest = subcommands[rest[0]], *rest[1:]
    command.make_context(name, rest)


@pytest.mark.parametrize("key", [key for key in files() if key.endswith(".py")])
@pytest.mark.usefixtures("reader")
def test_a_loss_that_is_shown_passes_the_battery(key: str, tmp_path: Path) -> None:
    name = key.split()[1]
    if "from lightly" in files()[key]:
        pytest.importorskip("lightly", reason='pip install "[perf]"')
    (loss,) = re.findall(r"^class (\w+)", files()[key], re.MULTILINE)
    assert [
        law for law in check_loss(f"{tmp_path / name}:{loss}", range(1)) if not law.passed
    ] == []


@pytest.mark.parametrize("page", ["README.md", "docs/own-loss.md", "docs/quickstart.ipynb"])
def test_a_loss_is_taught_with_ranges_that_can_be_tuned(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "ranges = declare(" in text.partition("class Mine(ScoreLoss)")[2].partition("def ")[0]
    assert not any("in_range" in taught.read_text() for taught in (ROOT / page, *PAGES))


def test_the_first_page_has_the_registrys_losses_by_family() -> None:
    text = (ROOT / "README.md").read_text()
    assert f"\n\n{HEAD}{families()}\n" in text, WRITE
    assert len(text.split()) < 950


def compared() -> dict[str, dict[str, str]]:
    if not STANDING.exists():
        return {}
    head, _, *rows = table_of("| " + STANDING.read_text().rpartition("\n| Method | ")[2])
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows}


def table_of(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize(
    ("page", "heading"),
    [("README.md", "## Compare"), ("docs/comparing.md", "## What the standing comparison found")],
)
def test_a_page_shows_places_of_the_standing_comparison(page: str, heading: str) -> None:
    """Another test makes its page from the records."""
    shown = (ROOT / page).read_text().partition(heading)[2].partition("\n## ")[0]
    head, _, *rows = table_of(shown) or [[], []]
    assert rows or page != "README.md" or not STANDING.exists()
    for name, *row in rows:
        assert row == [compared()[name.strip("`")][column] for column in head[1:]], name


def test_the_page_of_factors_shows_what_records_say() -> None:
    pairs = cb.compare("factors", results=ROOT / "results")
    page = (ROOT / "docs" / "factors.md").read_text().partition("## Noise")[2]
    head, _, *rows = table_of(page.partition("\n## ")[0])
    for name, scores, *cells in rows:
        levels = [f"{name}, {level}" for level in ("plain", "noise 20 %", "noise 40 %")]
        shown = [pairs[pairs.column == level].set_index("method") for level in levels]
        assert scores == ", ".join(f"{one.baseline_mean.iloc[0]:.1f}" for one in shown)
        for method, cell in zip(head[2:], cells, strict=True):
            assert cell == ", ".join(f"{one.difference[method]:+.1f}" for one in shown), name


def test_every_command_has_a_line_in_the_list() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    listed = set(re.findall(r"^\| `bench (\S+?)[ `]", page, re.MULTILINE))
    assert listed == set(get_command(app).commands)


def test_the_files_that_agents_are_told_of_are_there() -> None:
    named = re.findall(r"`((?:benchmarks|docs|domains|losses|tests)/[^`]*)`", AGENTS.read_text())
    assert len(named) > 10
    assert [
        name
        for name in named
        if not re.search("NAME|PAPER|DOMAIN", name) and not (ROOT / name).exists()
    ] == []


def test_commands_beside_findings_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "results" / "README.md").read_text()
    shown = [shlex.split(line) for line in re.findall(r"`bench ((?:compare|table) [^`]+)`", text)]
    assert len(shown) > 5
    for name, *rest in shown:
        read(name, list(rest))
        table = load_table(rest[0])
        if "--baseline" in rest:
            assert rest[rest.index("--baseline") + 1] in {row.name for row in table.rows}


@pytest.mark.slow
def test_where_losses_help_is_drawn_by_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = runpy.run_path(str(ROOT / "examples" / "where_it_helps.py"))
    script["main"]("standard-4", str(ROOT / "results"), tmp_path / "where.svg", "infonce again")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith(" 20 sets"), "each has a gain"
    assert (tmp_path / "where.svg").stat().st_size > 1000
    x, y = [1.0, 10.0, 100.0, 1000.0], [3.0, 6.0, 8.0, 12.0]
    per, half, p = script["slope"](x, y)
    assert (round(per, 6), p < 0.05, per - half > 0) == (2.9, True, True)
    assert script["sizes"]({"number": 3, "smallest": 20, "largest": 20}).tolist() == [20, 20, 20]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        # the answers of suites stand in results/, which another test makes anew
        ("adnce-table10", "better than GraphCL: none; worse than GraphCL: none"),
        ("renyicl-table6", "better than GraphCL: none; worse than GraphCL: none"),
        ("dasl-figure7 --baseline InfoGraph", "better than InfoGraph: none; worse than Info"),
        ("results/graph-degrees.yaml", "| GraphCL, from degrees | +8.54 ± 1.34, better | -8.73"),
        ("results/cifar10-5k.yaml", "better than SimCLR: none; worse than SimCLR: none"),
        ("results/cifar10-5k-adnce.yaml", "0.5: none; worse than SimCLR, temperature 0.5: none"),
        ("results/minilm.yaml --baseline 'as it is'", "it is: ADNCE (STS14, STS15); worse"),
        ("results/minilm-transfer.yaml", "better than as it is: none; worse than as it is: none"),
        (
            "adnce-table10 --baseline 'Degrees and labels, projected'",
            "projected: ADNCE (NCI1, RDT-B), GraphCL (NCI1, RDT-B)",
        ),
    ],
)
def test_findings_follow_from_the_records(words: str, found: str, bench: Bench) -> None:
    name, *rest = shlex.split(words)
    name = str(ROOT / name) if name.endswith(".yaml") else name
    code, out, said = bench("compare", name, *rest, "--results", str(ROOT / "results"))
    assert code == 0, said
    assert found in out


@pytest.mark.parametrize("page", [*PAGES, *FINDINGS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert page.stem not in {"search", "genindex", "py-modindex", "modindex"}, "Sphinx writes it"
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith(("http", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), link
