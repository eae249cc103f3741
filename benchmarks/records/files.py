"""Files that are there whole or not at all, whoever reads or writes beside."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written(folder: Path, text: str) -> Iterator[Path]:
    """The text in a file of its own in the folder, on the disk, until the end of the block."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


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
    with written(path.parent, text) as temporary:
        temporary.replace(path)
