"""Odd names, empty words, narrow streams and folders that cannot be written to."""

import subprocess
import sys
from pathlib import Path

import pytest

import contrastbench as cb
from contrastbench.errors import UserError
from made_records import add

MINE = """\
from contrastbench.losses.library.infonce import InfoNCE

class Mine(InfoNCE): ...
"""
QUICK = ["run", "--domain", "graph", "--dataset", "motifs", "--loss", "none"]
SWEEP = "seeds: 0-1\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n"


def test_a_folder_that_cannot_be_made_is_said_before_the_training(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "contrastbench.benchmarks.running.runner.train", lambda *_: pytest.fail("trained")
    )
    (tmp_path / "a file").touch()
    code, _, err = bench("run", "--domain", "graph", "--loss", "infonce", "--export", "a file/new")
    assert code == 2
    assert "cannot write to a file/new (Not a directory): name another folder with --export" in err
    assert not list(tmp_path.rglob("*.json"))


def test_an_export_that_fails_costs_no_record(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("contrastbench.domains.graph.domain.GraphDomain.export", full)
    code, out, err = bench(*QUICK, "--tiny", "--export", "new")
    assert (code, "accuracy" in out) == (0, True)
    assert "--export new failed (" in err
    assert "the record is kept, the model is not" in err


def test_a_path_with_parentheses_joins_a_sweep(bench, tmp_path: Path) -> None:
    (tmp_path / "a (1)").mkdir()
    (tmp_path / "a (1)" / "mine.py").write_text(MINE)
    (tmp_path / "s.yaml").write_text(SWEEP)
    code, out, err = bench("plan", "s.yaml", "--loss", "a (1)/mine.py:Mine(temperature=0.2)")
    assert (code, "a (1)/mine.py:Mine" in out + err) == (0, True)


def test_a_stream_of_few_characters_shows_the_others_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SWEEP)
    for seed in range(2):
        add(tmp_path / "results", seed, 80.0 + seed)
    command = [sys.executable, "-m", "contrastbench", "table", "s.yaml"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert rb"80.50 \xb1 0.71 (2)" in done.stdout


def test_python_takes_the_data_of_the_environment_and_one_loss(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRASTBENCH_DATA", "no folder")
    with pytest.raises(UserError, match="no folder"):
        cb.run("graph", "none", tiny=True)
    with pytest.raises(UserError, match="dataset must be a name"):
        cb.run("graph", "none", 3)
    (tmp_path / "s.yaml").write_text(SWEEP)
    assert {*cb.table("s.yaml", losses="adnce")["method"]} == {"infonce", "adnce"}
