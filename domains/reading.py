"""Reading what a user hands in: a damaged file is one line that names it."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from contrastbench.losses.errors import UserError

UNPACKED = 4 << 30  # bytes of an archive's member; more is no data set of ours but an accident


@contextmanager
def reading(what: object, fix: str) -> Iterator[None]:
    """Make whatever a reader raises one line.

    Readers of other libraries answer damage with any exception there is, so no list of them holds.

    Args:
        what: a file, or the name of a data set.
        fix: what to do.

    Raises:
        UserError: in place of what was raised.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        cause = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise UserError(f"{what} is damaged ({cause}): {fix}") from error


def names(archive: zipfile.ZipFile) -> list[str]:
    """The members of a zip: where its directory is damaged, none is taken for missing.

    Raises:
        BadZipFile: a name is not that of the member's own header, or an entry hides in another's
            comment, whose length is wrong.
    """
    for info in archive.infolist():
        archive.open(info).close()  # compares the names
        if b"PK\1\2" in info.comment + info.extra:
            raise zipfile.BadZipFile(f"the directory's entry of {info.filename}")
    return archive.namelist()


def member(archive: zipfile.ZipFile, name: str, limit: int = UNPACKED) -> bytes:
    """A member of a zip, at most so many bytes.

    Raises:
        UserError: it unpacks to more.
    """
    with archive.open(name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        gib = limit / 2**30
        raise UserError(f"{name} in {archive.filename} unpacks to more than {gib:.3g} GiB")
    return content
