"""Claims: of two processes one has the cell, whatever moment the other comes at."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import Timeout

from contrastbench.benchmarks.sweeps import claims
from contrastbench.benchmarks.sweeps.claims import claim

HOLDER = """
import sys
from pathlib import Path
from filelock import Timeout
from contrastbench.benchmarks.sweeps.claims import claim
try:
    with claim(Path(sys.argv[1]), wait=False):
        print("mine", flush=True)
        sys.stdin.read()
except Timeout:
    print("taken")
"""


def other_process(path: Path) -> str:
    words = [sys.executable, "-P", "-c", HOLDER, str(path)]
    run = subprocess.run(words, input="", capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_a_claim_is_of_one_process_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "cell.lock"
    with claim(path, wait=False):
        assert other_process(path) == "taken"
    assert other_process(path) == "mine"
    assert not path.exists()


def test_who_waited_for_a_file_that_lost_its_name_asks_for_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder ends after the waiting one has opened the file and before it locks it.

    Without a second look it and a third process would have the cell, by two files of one name.
    """
    path, flock = tmp_path / "cell.lock", fcntl.flock
    words = [sys.executable, "-P", "-c", HOLDER, str(path)]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "mine\n"
    opened = []

    def late(handle: int, how: int) -> None:
        if not opened:
            holder.communicate()
        opened.append(os.fstat(handle).st_nlink)
        flock(handle, how)

    monkeypatch.setattr(claims, "SECONDS_BETWEEN_TRIES", 0.001)
    monkeypatch.setattr(fcntl, "flock", late)
    with claim(path, wait=True):
        assert opened == [0, 1], "the first file had no name any more"
        assert other_process(path) == "taken"
    assert not path.exists()


def test_files_of_claims_that_nobody_holds_are_removed(tmp_path: Path) -> None:
    (tmp_path / "left.lock").touch()
    with claim(tmp_path / "held.lock", wait=False):
        claims.remove_dead_claims(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["held.lock"]
        with pytest.raises(Timeout), claim(tmp_path / "held.lock", wait=False):
            pass
    claims.remove_dead_claims(tmp_path / "not there")


def test_a_disk_without_locks_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that died there would else have left a marker that is held for ever."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    path = tmp_path / "claims" / "cell.lock"
    with claim(path, wait=True), claim(path, wait=True):
        pass
