"""Claim cells, so that other sweeps skip them; the published record decides, not the claim.

A claim is a lock that the system takes back when its process ends, however it ends. Its file goes
while the lock is held: whoever waited for that file finds that it has no name any more, and asks
for the name again. Brings no torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

SECONDS_BETWEEN_TRIES = 0.5


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
    for path in folder.glob("*.lock"):
        with suppress(Timeout), claim(path, wait=False):
            pass
