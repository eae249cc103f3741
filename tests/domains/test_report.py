"""What is said of data, and of what is done."""

import io
from pathlib import Path
from pkgutil import resolve_name

import pytest

from contrastbench.domains import progress
from contrastbench.domains.progress import Progress
from contrastbench.domains.report import DataReport
from contrastbench.domains.samples import Counted, Samples, Twins, count_twins

NOTHING = Twins(20, 0, 100, 0, 0, 100.0)


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    assert not DataReport(parts={"train": 80, "test": 20}, twins=NOTHING).lines("iris")
    assert DataReport("rows", {"train": 80, "test": 20}, own=True).lines("csv:t.csv") == [
        "csv:t.csv: 100 rows (80 train, 20 test)"
    ]


def test_at_most_five_lines_are_said_and_doubts_first() -> None:
    notes = {f"note {k}": Counted(k, f"row {k}") for k in range(1, 9)}
    report = DataReport("rows", {"all": 9}, notes=notes, doubts={"odd": ["a", "b", "c", "d"]})
    lines = report.lines("csv:t.csv")
    assert len(lines) == 5
    assert lines[1] == "  probably wrong: odd: a, b, c and 1 more"
    assert lines[-2:] == ["  note 2: 2 (first: row 2)", "  6 more: bench data check says all"]
    assert len(report.lines("csv:t.csv", 100)) == 10


def test_equal_samples_of_folds_are_counted_fold_by_fold() -> None:
    draws = [([2, 3], [0, 1]), ([0, 1], [2, 3])]
    assert count_twins("aaab", [0, 0, 0, 1], draws).trained_on == 3
    assert count_twins("aabb", [0, 0, 1, 1], draws).trained_on == 0


@pytest.mark.parametrize(("tested", "wrong"), [(1, False), (10, True)])
def test_many_equal_samples_are_probably_wrong(tested: int, wrong: bool) -> None:
    assert DataReport(twins=Twins(100, tested, 500, 2 * tested, 0, 100.0)).wrong == wrong


def test_samples_of_any_kind_are_reported_by_the_same_rules() -> None:
    """Equal and nearly equal samples, groups in both parts, and classes that look alike."""
    samples = Samples(
        "songs",
        {"train": 3, "test": 2},
        [0, 1, 2, 0, 1],
        ("Jazz", "jazz", "nan"),
        keys=lambda: "abcad",
        near=lambda: "aabab",
        groups="ppqpr",
    )
    report = DataReport.of(samples)
    assert (report.twins.trained_on, report.near.trained_on) == (1, 2)
    assert report.near.conflicts == 5
    assert [*report.doubts.values()] == [["'Jazz'", "'jazz'"], ["nan"], ["p"]]
    assert report.classes == {"Jazz": 2, "jazz": 2, "nan": 1}
    assert sum("test songs" in line for line in report.lines("mine", 99)) == 2
    folds = DataReport.of(Samples(labels=[0, 1], groups="pp", draws=[([0], [1])]))
    assert not folds.doubts, "folds may keep groups whole"


@pytest.mark.parametrize(
    ("labels", "classes", "named"),
    [
        ([0, 1, 2, 3], ("pos", "pos.", "p\u043es", "pos\u200b"), 4),
        ([0, 1, 2], ("-1", "0", "1"), 1),
        ([0, 1], ("-1", "1"), 0),
        ([-1.0, 0.5, 4], (), 1),
        ([-1.0, -0.5, 4], (), 0),
        ([0, 2, 1, 0], (), 3),
        ([0, 2, 1, 3], (), 0),
    ],
)
def test_labels_that_are_not_meant_so_are_named(
    labels: list[float], classes: tuple[str, ...], named: int
) -> None:
    report = DataReport.of(Samples(labels=labels, classes=classes, own=True))
    assert sum(map(len, report.doubts.values())) == named


def test_the_page_lists_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs/data-check.md").read_text("utf-8")
    places = "report:RULES tabular.rules:DOUBTS image.data.report:DOUBTS graph.domain:DOUBTS"
    places += " sentence.report:SHARES sentence.report:NO_DOUBTS graph.domain:NOTES"
    for place in places.split():
        assert not [x for x in resolve_name(f"contrastbench.domains.{place}") if x not in page]


def test_nearly_equal_samples_are_told_where_they_are_more() -> None:
    some = Twins(20, 5, 100, 10, 0, 100.0)
    assert len(DataReport(twins=NOTHING, near=some).lines("a")) == 2
    assert len(DataReport(twins=some, near=some).lines("a")) == 2


def test_a_step_may_count_for_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Progress(100, "encoding tokens") as bar:
        bar.step(size=60)
        bar.step("nearly", size=30)
    assert capsys.readouterr().err.splitlines() == [
        "encoding tokens: 60 of 100",
        "encoding tokens: 90 of 100 nearly",
    ]


def test_a_line_that_says_nothing_new_waits_ever_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with Progress(18, "sweep") as bar:
        told = []
        for now in range(0, 480, 10):
            bar.line("")
            told += [now] if capsys.readouterr().err else []
        bar.step()
    assert told == [30, 90, 210, 450]
    assert not capsys.readouterr().err, "what is new waits as ever"


def test_a_terminal_that_is_no_file_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python shell in a window has no descriptor that tells its size."""
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Progress(2, "training") as bar:
        bar.step()
    assert screen.getvalue() == "training: 1 of 2\n"
