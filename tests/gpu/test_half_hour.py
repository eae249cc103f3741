"""The script for half an hour with a GPU: its parts, by commands that only note them."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("half_hour.sh")
PARTS = ["doctor", "check", "tests", "perf-losses", "perf-graph", "perf-image", "perf-tabular"]
TRAININGS = ["resnet18-infonce", "resnet18-adnce", "table12-adnce"]
NOTES = '#!/bin/sh\necho "${{0##*/}} $*" >> {log}\necho said\n[ "$2" != graph ] || exit 3\n'


@pytest.mark.parametrize("tiny", [True, False])
def test_every_part_is_run_and_one_that_fails_stops_none(tiny: bool, tmp_path: Path) -> None:
    log, tools = tmp_path / "log", tmp_path / "tools"
    tools.mkdir()
    for name in ("bench", "python"):
        (tools / name).write_text(NOTES.format(log=log))
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "DEVICE": "cuda:1"}
    environment |= {"TINY": "1"} if tiny else {"EPOCHS": "7"}
    command = [str(SCRIPT), str(tmp_path / "out"), "folder:here"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    summary = (tmp_path / "out/summary.txt").read_text()
    assert summary == done.stdout
    names = [line.split(":")[0] for line in summary.splitlines()]
    assert names == PARTS + ([] if tiny else ["perf-sentence"]) + TRAININGS
    assert "perf-graph: exit code 3 after" in summary
    assert (tmp_path / "out/check.txt").read_text() == "said\n"
    asked = log.read_text().splitlines()
    assert len(asked) == len(names)
    assert all("cuda:1" in line for line in asked if "doctor" not in line and "pytest" not in line)
    trainings = [line for line in asked if line.startswith("bench run")]
    assert all("--dataset folder:here" in line for line in trainings)
    assert all(("--tiny" in line) is tiny for line in trainings)
    assert ("--recipe epochs=7" in trainings[0]) is not tiny
    assert ("--recipe preset=adnce" in trainings[2]) is not tiny
