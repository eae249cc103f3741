"""Claim cells, so that other sweeps skip them; the published record decides, not the claim.

A claim is a lock that the system takes back when its process ends, however it ends. Its file goes
while the lock is held: whoever waited for that file finds that it has no name any more, and asks
for the name again. Brings no torch.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from contrastbench.benchmarks.records.files import host

SECONDS_BETWEEN_TRIES = 0.5
MOUNTS = Path("/proc/self/mounts")  # of Linux
LOCAL = {"nolock", "localflock", "local_lock=all", "local_lock=flock"}  # options of NFS and Lustre
NEVER_SHARED = {  # file systems that hand no lock to their server
    *("fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.goofys"),
    *("fuse.blobfuse2", "fuse.mountpoint-s3"),
}
WEAK_LOCKS_NOTE = (
    ", so machines that share it may run a cell twice, and one record is kept: give each machine "
    "a --shard of its own"
)


@contextmanager
def claim(path: Path, wait: bool) -> Iterator[bool]:
    """Hold the cell's lock, and say whether it is held; on a disk without locks, hold nothing.

    Raises:
        Timeout: another process has it, and this one is not to wait.
    """
    lock = FileLock(
        path,
        timeout=-1 if wait else 0,
        poll_interval=SECONDS_BETWEEN_TRIES,
        fallback_to_soft=False,  # a marker of a host that died would be held for ever
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise
    except (OSError, NotImplementedError):  # no locks on this disk
        pass
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked:
            with suppress(OSError):  # a system may keep the name of an open file
                path.unlink(missing_ok=True)
            lock.release()


def remove_dead_claims(folder: Path) -> None:
    """Remove claims of processes that were killed."""
    for path in folder.glob("*.lock"):
        with suppress(Timeout), claim(path, wait=False):
            pass


def weakness(folder: Path) -> str:
    """Try the locks of a folder, and return why claims in it hold nobody off, or nothing.

    Of a folder that cannot be written to nothing is known: whoever has a record to write says so.
    """
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        return ""
    path = folder / f"probe-{host()}-{os.getpid()}.lock"
    with claim(path, wait=False) as held:
        if not held:
            return f"{folder}: this file system has no locks{WEAK_LOCKS_NOTE}"
        with suppress(Timeout), claim(path, wait=False):
            return f"{folder}: this file system grants one lock twice{WEAK_LOCKS_NOTE}"
    kind, options = mount_of(folder)
    if kind in NEVER_SHARED or LOCAL & options:
        return f"{folder}: {kind} holds locks on one machine alone{WEAK_LOCKS_NOTE}"
    return ""


def mount_of(folder: Path) -> tuple[str, set[str]]:
    """Return the type of the file system that a folder is on, and the options of its mount."""
    try:
        rows = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:  # no Linux
        return "", set()
    there = folder.absolute()
    found = {
        Path(where.replace(r"\040", " ")): (kind, options) for _, where, kind, options, *_ in rows
    }
    kind, options = next((found[above] for above in there.parents if above in found), ("", ""))
    return kind, set(options.split(","))
