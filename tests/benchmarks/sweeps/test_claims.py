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

OTHER = """
import sys
from pathlib import Path
from filelock import Timeout
from contrastbench.benchmarks.sweeps.claims import claim
try:
    with claim(Path(sys.argv[1]), wait=False):
        print("mine")
except Timeout:
    print("taken")
"""


def other_process(path: Path) -> str:
    words = [sys.executable, "-P", "-c", OTHER, str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_a_claim_is_of_one_process_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "cell.lock"
    with claim(path, wait=False):
        assert other_process(path) == "taken"
    assert other_process(path) == "mine"
    assert not path.exists()


HOLDER = """
import sys
from pathlib import Path
from contrastbench.benchmarks.sweeps.claims import claim
with claim(Path(sys.argv[1]), wait=False):
    print("held", flush=True)
    sys.stdin.read()
"""


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
    assert holder.stdout.readline() == "held\n"
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
    assert claims.weakness(tmp_path / "claims").endswith("has no locks" + claims.WEAK_LOCKS_NOTE)


def test_locks_that_hold_nobody_off_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems grant every lock."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert claims.weakness(tmp_path / "claims").endswith(
        "grants one lock twice" + claims.WEAK_LOCKS_NOTE
    )


def test_a_folder_with_locks_has_no_weakness(tmp_path: Path) -> None:
    assert claims.weakness(tmp_path / "claims") == ""
    assert list((tmp_path / "claims").iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "options", "local"),
    [
        ("ext4", "rw", False),
        ("nfs4", "rw,vers=4.2,local_lock=none", False),
        ("nfs", "rw,vers=3,nolock,local_lock=all", True),
        ("nfs", "rw,local_lock=posix", False),
        ("nfs", "rw,local_lock=flock", True),
        ("lustre", "rw,flock", False),
        ("lustre", "rw,localflock", True),
        ("fuse.sshfs", "rw", True),
        ("fuse.s3fs", "rw", True),
        ("fuse.juicefs", "rw", False),
    ],
)
def test_locks_of_one_machine_alone_are_noticed(
    kind: str, options: str, local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last mount above the folder counts; a name may have a space."""
    folder = tmp_path / "my results" / "claims"
    folder.mkdir(parents=True)
    space = str(folder.parent).replace(" ", r"\040")
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nhost:/b {tmp_path} nfs rw 0 0\n"
        f"host:/c {space} {kind} {options} 0 0\n"
        f"host:/d {space}2 fuse.sshfs rw 0 0\n"
    )
    monkeypatch.setattr(claims, "MOUNTS", mounts)
    found = claims.weakness(folder)
    assert (
        found
        == (f"{folder}: {kind} holds locks on one machine alone" + claims.WEAK_LOCKS_NOTE) * local
    )
