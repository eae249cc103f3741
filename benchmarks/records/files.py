"""Write files atomically, so that readers see a whole file or none."""

import csv
import errno
import io
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
# errors of a disk, or of a user's share of it, that is full
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
DISK_ERRORS = (*DISK_FULL, errno.EIO, errno.ESTALE, errno.EROFS)  # of no file in particular
# where a formula may begin, by its sign: other countries' spreadsheets part cells at semicolons
FORMULA = re.compile(r"(^|[;\t\r\n])(?=\s*[=+\-@＝＋－＠])")
AT_ONCE = 32  # files that wait for the disk


def host() -> str:
    """Return a name for this machine and container, within which process numbers are unique."""
    try:
        processes = Path("/proc/self/ns/pid").readlink()
    except OSError:
        processes = Path()
    return re.sub(r"[^a-zA-Z0-9]+", "-", f"{platform.node()} {processes}").strip("-")


def temporary(folder: Path) -> Path:
    """Return a name for a file on its way; what the dead have left there goes first."""
    remove_temporary(folder)
    return folder / f".{host()}.{os.getpid()}.{os.urandom(6).hex()}.tmp"


@cache
def remove_temporary(folder: Path) -> None:
    """Remove temporary files of this host's processes that have ended, once for each writer."""
    for path in folder.glob(f".{host()}.*.tmp"):
        number = path.name.split(".")[2]
        if number.isdecimal() and not process_exists(int(number)):
            with suppress(OSError):  # another was first, or it is another user's
                path.unlink()


def process_exists(number: int) -> bool:
    """Return whether a process has this number; True where that is unknown."""
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
def on_its_way(folder: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder, whose file is deleted unless it was renamed."""
    path = temporary(folder)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def temporary_file(folder: Path, data: bytes) -> Iterator[Path]:
    """Yield a temporary file that holds the bytes safely on disk."""
    with on_its_way(folder) as path:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield path


def publish_file(path: Path, data: bytes) -> bool:
    """Write a file that is never replaced; return False if one of that name exists."""
    with temporary_file(path.parent, data) as file:
        return link(file, path)


def publish_all(wanted: Mapping[Path, Callable[[], bytes]]) -> dict[Path, bool]:
    """Publish many files, each with what reads its bytes; return for each whether it was added.

    A disk takes as long for one as for many at once.
    """
    from concurrent.futures import ThreadPoolExecutor

    added, waiting = list[bool](), iter(wanted.items())
    folders = {path.parent for path in wanted}
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while batch := [(path, read()) for path, read in islice(waiting, 32 * AT_ONCE)]:
            added += pool.map(lambda item: publish_file(*item), batch)
    for folder in folders:
        sync_folder(folder)
    return dict(zip(wanted, added, strict=True))


def link(file: Path, path: Path) -> bool:
    """Give a file that is on the disk its name; False if there is one of that name.

    The link fails where one stands, so of two who publish the second changes nothing. A server
    whose answer is lost is asked again, and then says that its own link is there.
    """
    try:
        os.link(file, path)
    except FileExistsError:
        return path.samefile(file) if path.exists() else False
    return True


def free_mib(folder: Path) -> float:
    return shutil.disk_usage(folder).free / 2**20


def sync(path: Path) -> None:
    """Make a file's bytes survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Make new and removed names in a folder survive a power cut, where the system can."""
    with suppress(OSError):
        sync(path)


def replace(path: Path, content: str | bytes) -> None:
    """Write the file in place of an old one, which stays where the disk is full.

    A device such as /dev/stdout is written to, a link is followed.

    Raises:
        OSError: it cannot be written.
    """
    path = path.resolve()
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with temporary_file(path.parent, data) as new:
        new.replace(path)


def no_formula(value: T) -> T | str:
    """Escape a CSV cell so that no spreadsheet computes it; numbers stay as they are.

    Some spreadsheets skip white space before a formula, read full-width signs as plain ones, or
    begin a cell after a semicolon, a tab or a line break, in quotes too.

    >>> no_formula("=1+1"), no_formula("1+1"), no_formula(-1), no_formula(" @x"), no_formula("a;=1")
    ("'=1+1", '1+1', -1, "' @x", "a;'=1")
    """
    return FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


def comma_separated(rows: Sequence[Mapping[str, Any]], number: str) -> str:
    r"""Return rows with equal keys as CSV without formulas; None and NaN are empty cells.

    >>> comma_separated([{"name": "=1", "mean": -0.5, "n": 3, "std": None}], "{:.2f}")
    "name,mean,n,std\n'=1,-0.50,3,\n"
    """
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows([csv_cell(value, number) for value in row.values()] for row in rows)
    return text.getvalue()


def csv_cell(value: Any, number: str) -> Any:
    if isinstance(value, float):
        return "" if isnan(value) else number.format(value)
    return no_formula(value)
