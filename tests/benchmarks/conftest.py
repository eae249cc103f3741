"""Fixtures of the command line's tests."""

import signal
import sys
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli import main as cli
from contrastbench.benchmarks.running import launch


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name in ("CONTRASTBENCH_DATA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bench", *words])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        monkeypatch.setattr(
            launch, "private_channel", lambda: sys.stdout
        )  # the real one is for a whole process
        with pytest.raises(SystemExit) as end:
            cli.main()
        return (end.value.code or 0, *capsys.readouterr())

    return call
