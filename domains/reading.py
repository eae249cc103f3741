"""Reading what a user hands in: a damaged file is one line that names it."""

import re
import stat
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from gzip import GzipFile
from math import inf
from pathlib import Path
from typing import IO

from contrastbench.errors import UserError

UNPACKED = 4 << 30  # bytes of an archive's member; more is no data set of ours but an accident


@contextmanager
def reading(
    what: object, fix: str = "repair or replace it", fault: str = "is damaged", extra: str = ""
) -> Iterator[None]:
    """Make whatever a reader raises one line.

    Readers of other libraries answer damage with any exception there is, so no list of them holds.

    Args:
        what: a file, or the name of a data set.
        fix: what to do.
        fault: what to say of it.
        extra: what pip installs for the reader; a library that is missing is then named with it.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if extra and isinstance(error, ImportError):
            raise missing(what, error.name or extra, extra) from None
        raise UserError(f"{what} {fault} ({cause(error)}): {fix}") from error


def missing(what: object, module: str, extra: str) -> UserError:
    fix = f'pip install "contrastbench[{extra}]"'
    return UserError(f"{what} needs {module}, which is not installed: {fix}")


def refuse(what: object, *rules: tuple[object, str]) -> None:
    """Raise by the first rule that something breaks.

    Args:
        what: is refused, such as a file.
        rules: what breaks it, nothing where it is empty or false; and words that follow `what`.
            The first of several faults stands in the place of {}, and its parts if it is a tuple.

    Raises:
        UserError: one rule is broken.

    >>> refuse("a.csv", (0 > 1, " is odd"), ([("b", 2), ("c", 3)], ": {} is there {} times"))
    Traceback (most recent call last):
    contrastbench.errors.UserError: a.csv: b is there 2 times
    """
    for broken, words in rules:
        several = isinstance(broken, Collection) and not isinstance(broken, str)
        if len(broken) if several else broken:  # type: ignore[arg-type]
            first = next(iter(broken)) if several else broken  # type: ignore[call-overload]
            for part in first if isinstance(first, tuple) else (first,):
                words = words.replace("{}", str(part), 1)
            raise UserError(f"{what}{words}")


KINDS = {  # how files begin, and what they are
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "packed by gzip",
    b"%PDF": "a PDF",
    b"SQLite format 3": "a SQLite database",
    b"\x93NUMPY": "an array of NumPy (.npy)",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow file",
    b"@relation": "an ARFF file",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<table": "a web page",
    b"@problemname": "a file of time series (.ts)",
    b"<?xml": "XML",
    b"%%MatrixMarket": "a matrix of Matrix Market",
    b"version https://git-lfs": "a pointer of Git LFS, without the file itself",
}


def file_kind(path: Path) -> str:
    """Return what a file is by its first bytes, whatever its name; empty: nothing that is known."""
    with path.open("rb") as file:
        start = file.read(512).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"PK\3\4"):
        with suppress(Exception), zipfile.ZipFile(path) as archive:
            if any(name.startswith("xl/") for name in archive.namelist()):
                return "an Excel workbook"
        return "a zip archive"
    if re.match(rb"[\[{]\s*[\[{\"]|[\[{]\s*$", start):
        return "JSON"
    low = start.lower()
    return next((kind for mark, kind in KINDS.items() if low.startswith(mark.lower())), "")


def check_kind(path: Path, wanted: str, fix: str) -> None:
    if kind := file_kind(path):
        raise UserError(f"{path} is {kind}, not {wanted}: {fix}")


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Make a library that is not installed the line that installs it."""
    try:
        yield
    except ImportError as error:
        raise missing(what, error.name or extra, extra) from None


def cause(error: BaseException) -> str:
    r"""Return an exception's message in one line.

    >>> cause(ValueError("not this:\nnor that")), cause(MemoryError())
    ('not this', 'MemoryError')
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if type(error).__name__ == "ValidationError":  # pydantic's: a count, the place, the fault
        lines = [": ".join(lines[1:3]).partition(" [type=")[0]]
    return lines[0].rstrip(":")[:200] if lines else type(error).__name__


def contents(path: Path, limit: float = inf, fix: str = "") -> bytes:
    """A file's bytes, at most so many; those of a pipe or a device might never end: refused."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise OSError(0, "not a regular file")
        if about.st_size > limit:
            raise OSError(0, f"larger than {limit / 2**20:.3g} MiB")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})" + f": {fix}" * bool(fix)) from None


def member_names(archive: zipfile.ZipFile) -> list[str]:
    """The members of a zip: where its directory is damaged, none is taken for missing.

    Raises:
        BadZipFile: a name is not that of the member's own header, or that of two members, or an
            entry hides in another's comment, whose length is wrong.
    """
    names = archive.namelist()
    if several := doubles(names):
        raise zipfile.BadZipFile(f"two members are named {several[0]}")
    for info in archive.infolist():
        archive.open(info).close()  # compares the names
        if b"PK\1\2" in info.comment + info.extra:
            raise zipfile.BadZipFile(f"the directory's entry of {info.filename}")
    return names


def doubles(names: Iterable[str]) -> list[str]:
    """Return the names that are there twice, of which readers take one or the other.

    >>> doubles(["a", "b", "a"]), doubles("ab")
    (['a'], [])
    """
    return [name for name, count in Counter(names).items() if count > 1]


def check_doubles(what: object, columns: Iterable[str]) -> None:
    """Raise if two columns of a table have one name: it would be unclear which one is meant."""
    names = " or ".join(doubles(columns))
    refuse(what, (names, ": several columns have the name {}: rename or remove them"))


def member(archive: zipfile.ZipFile, name: str, limit: int = UNPACKED) -> bytes:
    with archive.open(name) as file:
        return unpacked(file, f"{name} in {archive.filename}", limit)


def unpacked(file: IO[bytes] | GzipFile, what: object, limit: int = UNPACKED) -> bytes:
    content = file.read(limit + 1)
    if len(content) > limit:
        raise UserError(f"{what} unpacks to more than {limit / 2**30:.3g} GiB")
    return content


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word  # which Python alone reads
