"""Progress: what is done, and what counts for several."""

import io

import pytest

from contrastbench.domains import progress
from contrastbench.domains.progress import Progress


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
