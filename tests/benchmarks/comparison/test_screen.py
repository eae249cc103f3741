"""A comparison on a terminal: it fits the width, and 25 lines."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.comparison.effects import OverSets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.report import screen
from contrastbench.benchmarks.report.comparison import (
    brief_difference,
    by_method,
    render_comparison,
)
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import LOSSES
from made_records import made
from tools.told import verdicts

WIDTHS = (60, 80, 100)
SETS = ("MUTAG", "DD", "NCI1", "PROTEINS", "COLLAB", "PTC_FM", "IMDB-BINARY", "REDDIT-BINARY")
NAMES = [name for name in LOSSES if name not in ("infonce", "npair", "proxy_anchor")][:15]


def table(sets: int, names: list[str]) -> Table:
    return Table(
        name="wide",
        title="t",
        source="s",
        decimals=1,
        domain="graph",
        metric="accuracy",
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
                made(results, wide.experiment(row, column), seed, metrics=score)
    return results


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("sets", "losses"), [(8, 15), (3, 2), (3, 15), (1, 1), (5, 1)])
def test_a_comparison_fits_the_terminal(filled: Path, width: int, sets: int, losses: int) -> None:
    wide = table(sets, NAMES[:losses])
    lines = render_comparison(resolve(wide, None, filled), "md", width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 25
    assert not [line for line in lines if line != line.rstrip()]
    shown = "\n".join(lines)
    assert sum(f"\n{name} " in shown for name in NAMES) >= min(losses, 2)
    assert "bench compare with --all" in " ".join(lines)


def test_what_a_narrow_terminal_leaves_out_is_counted(filled: Path) -> None:
    wide = table(8, NAMES)
    lines = render_comparison(resolve(wide, None, filled), "md", width=60).splitlines()
    (more,) = [line for line in lines if line.startswith("and ")]
    shown = sum(line.split("  ")[0] in NAMES for line in lines)
    assert more == f"and {len(NAMES) - shown} more rows"


def test_differences_that_do_not_fit_side_by_side_stand_below_each_other(filled: Path) -> None:
    wide = table(5, NAMES[:1])
    lines = render_comparison(resolve(wide, None, filled), "md", width=60).splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(f"{NAMES[0]} ")] == [
        [NAMES[0], name] for name in SETS[:5]
    ]


def test_many_differences_are_one_line_a_method(filled: Path) -> None:
    wide = table(5, NAMES[:4])
    lines = render_comparison(resolve(wide, None, filled), "md", width=60).splitlines()
    (header,) = [line for line in lines if line.startswith("Method")]
    assert "Better on" in header
    found = [line.split() for line in lines if line.startswith(tuple(NAMES[:4]))]
    assert found == [[name, "-", "-", "5", "undecided"] for name in NAMES[:4]]


def test_long_names_of_methods_and_sets_leave_room_for_numbers(filled: Path) -> None:
    wide = table(5, NAMES[:4])
    rows = [row.model_copy(update={"name": f"{row.name}, a long name"}) for row in wide.rows]
    named = wide.model_copy(update={"rows": rows})
    lines = render_comparison(resolve(named, None, filled), "md", width=40).splitlines()
    (header,) = [line for line in lines if line.startswith("Method")]
    assert header.split() == ["Method", "undecided"], "a verdict that no method has takes no room"
    assert any(line.split("  ")[-1] == "5" for line in lines)


def test_differences_without_verdicts_are_narrower(filled: Path) -> None:
    """Two sets and many methods fit 60 columns with their numbers."""
    lines = render_comparison(
        resolve(table(2, NAMES[:8]), None, filled), "md", width=50
    ).splitlines()
    assert "wide against infonce: differences ± half of the 95" in lines
    assert "% interval, uncorrected (* is decided)" in lines
    found = [line for line in lines if line.startswith(tuple(NAMES[:8]))]
    assert len(found) == 8
    assert all(line.count(" ± ") == 2 and "undecided" not in line for line in found)


def test_a_decided_difference_has_a_star() -> None:
    known = {"difference": 1.5, "half_width": 1.0}
    texts = [
        brief_difference(Comparison("new", "A", "graph", verdict=verdict, **known))
        for verdict in ("better", "worse", "undecided")
    ]
    assert texts == ["+1.50 ± 1.00*", "+1.50 ± 1.00*", "+1.50 ± 1.00"]
    failed = Comparison("new", "A", "graph", verdict="failed", failure="diverged")
    assert brief_difference(failed) == "failed"


def test_a_method_names_the_sets_that_are_decided() -> None:
    places = [
        ("A", "better"),
        ("B", "worse"),
        ("C", "undecided"),
        ("D", "better"),
        ("E", "failed"),
    ]
    some = [Comparison("new", name, "graph", verdict=verdict) for name, verdict in places]
    assert by_method(verdicts(OverSets([]), some)) == [
        ["Method", "Better on", "Worse on", "Others"],
        ["new", "A, D", "B", "1 undecided, 1 failed"],
    ]


DROPS = (("On single sets",), ("graph", "tabular"), ("95 %",))


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (59, ["Method  Effect  95 %        graph  tabular  Verdict", 0]),
        (50, ["Method  Effect  95 %        Verdict", "mine    +5      -20 to +25  undecided"]),
        (30, ["Method  Effect  Verdict", "mine    +5      undecided"]),
        (12, ["Method  Eff…", "mine    +5 …"]),
    ],
)
def test_columns_go_in_groups_and_the_verdict_stays(width: int, lines: list[str]) -> None:
    """Some domains without the others would mislead."""
    rows = [
        ["Method", "Effect", "95 %", "graph", "tabular", "Verdict", "On single sets"],
        ["mine", "+5", "-20 to +25", "+6", "-2", "undecided", "23 undecided"],
    ]
    found = screen.fitted(rows, width, DROPS)
    assert found[0] == lines[0]
    assert lines[1] in (0, found[1])


def test_a_long_name_is_cut() -> None:
    rows = [["Method", "Verdict"], ["a" * 50, "undecided"]]
    assert screen.fitted(rows, 30, DROPS)[1] == f"{'a' * 18}…  undecided"


@pytest.mark.parametrize(
    ("terminal", "columns", "width"),
    [(False, None, None), (True, "70", 70), (False, "60", 60), (False, "x", None), (True, "5", 40)],
)
def test_only_a_terminal_or_columns_ask_for_a_width(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, columns: str | None, width: int | None
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    assert screen.width() == width


@pytest.mark.parametrize("width", WIDTHS)
def test_the_standing_comparison_fits(bench, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    shipped = Path(__file__).parents[3] / "results"
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = bench("compare", "standard", "--results", str(shipped))
    lines = out.splitlines()
    assert (code, len(lines) <= 25, max(map(len, lines)) <= width) == (0, True, True)
    starts = [line.startswith("On these 5 data sets") for line in lines]
    assert any(starts) is (width >= 80)


def test_words_give_way_to_a_table_with_too_few_lines() -> None:
    """First the last part, then the breaks between parts, then rows."""
    rows = [["Method", "Verdict"], *[[f"loss {k}", "undecided"] for k in range(20)]]
    aside = " ".join(["Aside."] * 5)
    found = {
        parts: screen.page(["One sentence."] * parts, aside, "h", rows, [], [], 60).splitlines()
        for parts in (16, 17, 18, 40)
    }
    assert [aside in lines for lines in found.values()] == [True, False, False, False]
    assert ["One sentence." in lines for lines in found.values()] == [True, True, False, False]
    assert all(len(lines) == 25 for lines in found.values())
