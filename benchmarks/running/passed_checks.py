"""Remember which losses of a user's own have passed the battery, and which laws they decline.

A file for each, named by the hash of its code; a registered loss has no hash and no file.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import platformdirs


def note_passed(code: str, declined: Mapping[str, str]) -> None:
    """Remember that this code has passed all laws but those that it declines.

    Raises:
        OSError: that cannot be written.
    """
    if not code:
        return
    folder = passed_note_path(code).parent
    if folder.is_file():  # early versions wrote this file for registered losses
        folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    passed_note_path(code).write_text(json.dumps(dict(declined)), encoding="utf-8")


def noted_laws(code: str) -> dict[str, str] | None:
    """Return the laws that this code declines, with its reasons; None if it was never checked.

    Ours has passed all, in the tests.
    """
    if not code:
        return {}
    with suppress(OSError, ValueError, TypeError):
        # once empty
        return dict(json.loads(passed_note_path(code).read_text(encoding="utf-8") or "{}"))
    return None


def remarks(loss: str, code: str) -> Iterator[str]:
    """Yield what a user should know of a loss: it was never checked, or it declines laws."""
    declined = noted_laws(code)
    if declined is None:
        yield f"never checked: bench check-loss {shlex.quote(loss)} takes seconds"
    for law, reason in (declined or {}).items():
        yield f"checked, but {loss} declines the law {law!r}: {reason}"


def passed_note_path(code: str) -> Path:
    """Return the path of the note about this code."""
    return Path(platformdirs.user_cache_dir("contrastbench")) / "checked" / code
