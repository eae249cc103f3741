"""Find out before a training whether its record can be published. Brings no torch."""

import tempfile
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.records.store import Record
from contrastbench.errors import UserError

LARGE_RECORD = 2**16  # bytes


class NotWritten(UserError):
    """The disk did not take a record, or has no room for one that is to be made."""

    def __init__(self, message: str, record: Record | None = None) -> None:
        super().__init__(message)
        self.record = record


def check_writable(folder: Path) -> None:
    """Raise if records cannot be published there, which takes room and a link.

    Raises:
        NotWritten: the disk is full.
        UserError: the folder is not writable for another reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with files.temporary_file(folder, bytes(LARGE_RECORD)) as file:
            linked = files.temporary(folder)
            files.link(file, linked)
            linked.unlink()
    except OSError as error:
        said, fix = f"cannot write to {folder} ({error.strerror})", "another folder with --results"
        if error.errno in files.DISK_FULL:
            there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
            said += f": {files.free_mib(there):.0f} MiB are free, make room or name"
            raise NotWritten(f"{said} {fix}") from None
        raise UserError(f"{said}: name {fix}") from None


def prepare_output(folder: Path, option: str) -> None:
    """Make the folder that an option names, before anything is trained for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(
            f"cannot write to {folder} ({error.strerror}): name another folder with {option}"
        ) from None
