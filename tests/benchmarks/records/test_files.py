"""Files on their way: names that nobody shares, and an end for those of the dead."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contrastbench.benchmarks.records import exports, files
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.losses.spec import LossSpec
from made_records import record_of

WRITER = """
import sys
from pathlib import Path
from contrastbench.benchmarks.records import files
with files.temporary_file(Path(sys.argv[1]), b"half a record") as path:
    print(path, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_and_a_living_one_s_stays(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "graph" / "motifs" / "infonce"
    folder.mkdir(parents=True)
    writers = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", WRITER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    dead, living = (
        Path(str(writer.stdout and writer.stdout.readline()).strip()) for writer in writers
    )
    others = [
        folder / ".elsewhere.1.ab.tmp",
        folder / f".{files.host()}.x.ab.tmp",
        folder / "a.tmp",
    ]
    for path in others:
        path.touch()
    writers[0].send_signal(signal.SIGKILL)
    writers[0].communicate()
    assert dead.exists()
    assert living.exists()
    files.publish_file(folder / "next", b"of the next writer")
    (folder / "next").unlink()
    assert sorted(folder.iterdir()) == sorted([living, *others])
    writers[1].communicate()
    assert sorted(folder.iterdir()) == sorted(others)


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert files.process_exists(1)


def test_a_name_that_leads_nowhere_is_taken(tmp_path: Path) -> None:
    """What is published there would be no file, and nobody would miss it."""
    (tmp_path / "a").symlink_to(tmp_path / "nothing")
    assert not files.publish_file(tmp_path / "a", b"a record")
    assert not (tmp_path / "a").exists()


def test_an_export_is_of_its_own_cell_alone(tmp_path: Path) -> None:
    record = record_of(Experiment("graph", "MUTAG", LossSpec("infonce"), {}), 0)
    assert not exports.holds(tmp_path, record)
    (tmp_path / exports.CELL_FILE).write_text(json.dumps(record))
    assert exports.holds(tmp_path, record)
    assert not exports.holds(tmp_path, {**record, "seed": 1})
