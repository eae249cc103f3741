"""Files that are there whole or not at all, whoever reads or writes beside."""

import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def host() -> str:
    """Whose process numbers these are: the machine's name, and which of its containers."""
    try:
        processes = Path("/proc/self/ns/pid").readlink()
    except OSError:
        processes = Path()
    return re.sub(r"[^a-zA-Z0-9]+", "-", f"{platform.node()} {processes}").strip("-")


def temporary(folder: Path) -> Path:
    """A name for a file on its way: the host's, the process's, and a random part."""
    return folder / f".{host()}.{os.getpid()}.{secrets.token_hex(6)}.tmp"


def sweep(folder: Path) -> None:
    """Remove files on their way whose process was of this host and is dead."""
    for path in folder.glob(f".{host()}.*.tmp"):
        number = path.name.split(".")[2]
        if number.isdecimal() and not alive(int(number)):
            path.unlink(missing_ok=True)


def alive(number: int) -> bool:
    """Whether there is a process of this number; where that cannot be asked, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def written(folder: Path, text: str) -> Iterator[Path]:
    """The text in a file of its own in the folder, on the disk, until the end of the block."""
    path = temporary(folder)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield path
    finally:
        path.unlink(missing_ok=True)


def replace(path: Path, text: str) -> None:
    """Write the file in place of an old one, which stays where the disk is full.

    A device such as /dev/stdout is written to, a link is followed.

    Raises:
        OSError: it cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    with written(path.parent, text) as new:
        new.replace(path)


def no_formula(value: T) -> T | str:
    """A cell of a CSV file that no spreadsheet computes; numbers are as they are.

    >>> no_formula("=1+1"), no_formula("1+1"), no_formula(-1)
    ("'=1+1", '1+1', -1)
    """
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if risky else value
