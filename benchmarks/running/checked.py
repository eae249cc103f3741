"""Remember which losses of a user's own have passed the battery.

An empty file for each, named by the hash of its code; a registered loss has no hash and no file.
"""

from contextlib import suppress
from pathlib import Path

import platformdirs


def note(code: str) -> None:
    """Remember that this code has passed; where that cannot be written, it is forgotten."""
    if not code:
        return
    with suppress(OSError):
        folder = place(code).parent
        if folder.is_file():  # early versions wrote this file for registered losses
            folder.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        place(code).touch()


def is_noted(code: str) -> bool:
    """Return whether this code has passed; ours has, in the tests."""
    return not code or place(code).exists()


def place(code: str) -> Path:
    """Return the path of the note about this code."""
    return Path(platformdirs.user_cache_dir("contrastbench")) / "checked" / code
