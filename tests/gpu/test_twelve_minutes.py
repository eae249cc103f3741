"""The script for a GPU: its parts, by commands that only note their words."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from contrastbench.benchmarks.cli.main import app

SCRIPT = Path(__file__).with_name("twelve_minutes.sh")
NOTES = """#!/bin/sh
{{ printf "%s\\t" "$@"; echo; }} >> {log}
echo said
[ "$3" != {fails} ] || exit 3
"""
PARTS = re.search(r"PARTS:-([\w ]+)", SCRIPT.read_text())[1].split()
PERF = ["losses", "image", "graph", "sentence"]


def run(folder: Path, fails: str = "none", **environment: str) -> tuple[list[str], list[list[str]]]:
    log, tools = folder / "log", folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("python", "nvidia-cuda-mps-control"):
        (tools / name).write_text(
            NOTES.format(log=log if name == "python" else "/dev/null", fails=fails)
        )
        (tools / name).chmod(0o755)
    log.write_text("")
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = [str(SCRIPT), str(folder / "out"), "/data"]
    subprocess.run(command, env=os.environ | path | environment, check=True, capture_output=True)
    asked = [line.split("\t")[:-1] for line in log.read_text().splitlines()]
    return (folder / "out/summary.txt").read_text().splitlines(), asked


def test_each_part_runs_within_eleven_minutes_and_one_that_fails_stops_none(tmp_path: Path) -> None:
    said, asked = run(tmp_path, fails="perf")
    assert [line.split(":")[0] for line in said] == PARTS
    assert sum(int(re.search(r"s of (\d+):", line)[1]) for line in said) <= 660
    assert [line.split(":")[0] for line in said if "exit code 3" in line] == PERF
    assert len(asked) == len(PARTS)
    again, _ = run(tmp_path)
    assert [line.split(":")[0] for line in again[len(PARTS) :]] == PERF
    assert (tmp_path / "out.tgz").is_file()


@pytest.mark.parametrize("tiny", [True, False])
def test_every_command_can_be_given(tiny: bool, tmp_path: Path) -> None:
    _, asked = run(tmp_path, DEVICE="cuda:1", **({"TINY": "1"} if tiny else {}))
    for module, *words in asked:
        if module != "-m":
            assert Path(module).is_file()
            assert words[1 : 2 + tiny] == ["cuda:1", *(["--tiny"] if tiny else [])]
        elif words[0] == "contrastbench":
            check(words[1], words[2:])
        else:
            assert words[0] == "pytest"


def check(name: str, words: list[str]) -> None:
    """Read the words as the command does; a sweep's table, rows and seeds make a plan."""
    params: dict[str, Any] = get_command(app).commands[name].make_context(name, words).params
    assert params.get("device", "cuda:1") == "cuda:1"
    if name == "sweep":
        only = [word for row in params["only"] or [] for word in ("--only", row)]
        seeds = ["--seeds", params["seeds"]] if params["seeds"] else []
        tiny = ["--tiny"] if params["tiny"] else []
        words = ["plan", params["what"], *only, *seeds, *tiny, "--results", "no-results"]
        found = CliRunner().invoke(app, words)
        assert "3 missing" in found.output, found.output
