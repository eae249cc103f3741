"""A comparison on a terminal: it fits the width, and has every row."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.cli import output
from contrastbench.benchmarks.report import screen
from contrastbench.benchmarks.report.comparison import render_comparison
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import LOSSES
from made_records import made, small_table

WIDTHS = (60, 100)
SETS = ("MUTAG", "DD", "NCI1", "PROTEINS", "COLLAB", "PTC_FM", "IMDB-BINARY", "REDDIT-BINARY")
NAMES = [name for name in LOSSES if name not in ("infonce", "npair", "proxy_anchor")][:15]


def table(sets: int, names: list[str]) -> Table:
    return small_table(
        name="wide",
        columns={name: {"dataset": name} for name in SETS[:sets]},
        rows=[{"name": name, "loss": name} for name in ("infonce", *names)],
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of every place; methods differ by a point."""
    results, wide = tmp_path_factory.mktemp("results"), table(8, NAMES)
    for column in wide.columns:
        for i, row in enumerate(wide.rows):
            for seed in range(2):
                score = {"accuracy": 70.0 + i + 0.1 * seed * (i + 1)}
                made(results, wide.places[row.name, column].work, seed, metrics=score)
    return results


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("sets", "losses"), [(8, 15), (3, 15), (1, 1)])
def test_a_comparison_fits_the_terminal(filled: Path, width: int, sets: int, losses: int) -> None:
    wide = table(sets, NAMES[:losses])
    lines = render_comparison(resolve(wide, None, filled), "md", width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line != line.rstrip()]
    shown = "\n".join(lines)
    assert all(f"\n{name} " in shown for name in NAMES[:losses])
    assert "bench compare with --all" in " ".join(lines)


def test_differences_that_do_not_fit_side_by_side_have_lines_of_their_own(filled: Path) -> None:
    lines = render_comparison(resolve(table(5, NAMES[:4]), None, filled), "md", width=60)
    found = [line.split()[:2] for line in lines.splitlines() if line.startswith(tuple(NAMES[:4]))]
    assert found == [[name, column] for name in NAMES[:4] for column in SETS[:5]]


ROWS = [["Method", "Effect", "graph", "tabular"], ["mine", "+5 \x1b ± 2\n0", "+6", "[b]-2"]]
FEWER = [row[:2] for row in ROWS]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (37, ["Method  Effect         graph  tabular", r"mine    +5 \x1b ± 2 0  +6     [b]-2"]),
        (36, ["Method  Effect", r"mine    +5 \x1b ± 2 0"]),
        (16, ["Method  Effect", r"mine    +5 \x1b", "        ± 2 0"]),
    ],
)
def test_the_first_table_that_fits_is_shown_and_the_last_one_is_folded(
    width: int, lines: list[str]
) -> None:
    page = screen.page("so", "head", [ROWS, FEWER], "hint", width)
    shown = page.splitlines()
    assert shown[:3] == ["so", "", "head"]
    assert shown[3 : 3 + len(lines)] == lines
    assert shown[-1] == "hint"


@pytest.mark.parametrize(
    ("terminal", "columns", "width"),
    [
        (False, None, None),
        (True, "70", 70),
        (False, "60", 60),
        (False, "x", None),
        (True, "50", 50),
    ],
)
def test_only_a_terminal_or_columns_ask_for_a_width(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, columns: str | None, width: int | None
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    assert output.width() == width


def test_the_standing_comparison_fits(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[3] / "results"
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = bench("compare", "standard", "--results", str(shipped))
    lines = out.splitlines()
    assert (code, max(map(len, lines)) <= 60) == (0, True)
    assert {line.split("  ")[0] for line in lines} >= {"raw input", "untrained"}
    assert "Controls as they must be" in out
