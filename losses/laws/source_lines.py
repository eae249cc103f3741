"""Find the line of a user's file that a diagnosis is about."""

import linecache
import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import FrameType

from contrastbench.losses.base import Loss, definition, summands
from contrastbench.losses.code import source_files

LAWS_FOLDER = os.path.dirname(__file__)  # noqa: PTH120


@dataclass(frozen=True)
class SourceLine:
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        path = Path(self.file)
        short = os.path.relpath(path) if path.is_relative_to(Path.cwd()) else self.file
        return f"{short}:{self.line}: {linecache.getline(self.file, self.line).strip()}"


def code_folders(loss: Loss) -> set[str]:
    """Return the folders of the user's own classes; ours where there are none."""
    terms = [definition(term) for _, term in summands(loss)]
    kinds = [kind for term in terms for kind in getattr(term, "__mro__", (term,))]
    others = [k for k in kinds if not k.__module__.startswith(("torch.", "builtins"))]
    own = [kind for kind in others if not kind.__module__.startswith("contrastbench.")]
    files = {file for kind in own or others for file in source_files(kind)}
    return {os.path.dirname(file) for file in files}  # noqa: PTH120 - many frames, so fast


def lines_within(
    frames: Iterable[tuple[FrameType, int]], folders: Container[str]
) -> Iterator[SourceLine]:
    for frame, line in frames:
        file = frame.f_code.co_filename
        if os.path.dirname(file) in folders:  # noqa: PTH120
            yield SourceLine(file, line)


def error_place(error: BaseException, loss: Loss) -> SourceLine | None:
    """Return the innermost line of the user's own through which an error came."""
    places = [*lines_within(walk_tb(error.__traceback__), code_folders(loss))]
    return places[-1] if places else formula_place(loss)


def raised_by_check(error: BaseException) -> bool:
    return bool([*lines_within([*walk_tb(error.__traceback__)][-1:], {LAWS_FOLDER})])


def formula_place(loss: Loss) -> SourceLine | None:
    own = code_folders(loss)
    for _, term in summands(loss):
        for name in ("terms", "combine", "of_views", "forward"):
            code = getattr(getattr(definition(term), name, None), "__code__", None)
            if code and os.path.dirname(code.co_filename) in own:  # noqa: PTH120
                return SourceLine(code.co_filename, code.co_firstlineno)
    return None
