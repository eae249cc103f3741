"""Find the line of a user's file at which an operation of torch was called."""

import linecache
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

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


@dataclass(frozen=True)
class Step:
    """A call of a function of torch, with its tensors and the user's line."""

    name: str
    place: SourceLine | None
    arguments: tuple[Any, ...]
    result: Any

    @property
    def inputs(self) -> list[Tensor]:
        """Return the tensors among the arguments."""
        return list(tensors_in(self.arguments))

    @property
    def in_place(self) -> bool:
        """Return whether the call changes its first argument."""
        plain = self.name.endswith("_") and not self.name.endswith("__")
        return plain or self.name.startswith("__i") or self.name == "__setitem__"

    @property
    def cuts(self) -> bool:
        """Return whether a gradient gets to the inputs' side and no further."""
        results = list(tensors_in(self.result))
        if results:
            cut = any(x.is_floating_point() and not x.requires_grad for x in results)
        else:
            cut = isinstance(self.result, float | list) or type(self.result).__name__ == "ndarray"
        return cut and any(x.requires_grad for x in self.inputs)


class Trace(TorchFunctionMode):
    """Record the calls of torch within, with the line of the user's own that makes each."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.folders = code_folders(loss)
        self.steps: list[Step] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        arguments = (*args, *(kwargs or {}).values())
        name = getattr(func, "__name__", "")
        self.steps.append(Step(name, frame_place(caller(), self.folders), arguments, result))
        for tensor in tensors_in(result):
            if tensor.requires_grad and not tensor.is_leaf:
                tensor.retain_grad()
        return result

    def maker(self, tensor: Tensor) -> Step | None:
        """Return the last call that returned the tensor."""
        made = (s for s in reversed(self.steps) if any(x is tensor for x in tensors_in(s.result)))
        return next(made, None)

    def cut(self, allowed: tuple[str, ...] = ()) -> SourceLine | None:
        """Return the first line of the user's own at which a gradient ends."""
        found = (s.place for s in self.steps if s.place and s.cuts and s.name not in allowed)
        return next(found, None)

    def changed(self, *scores: Tensor) -> SourceLine | None:
        """Return the first line of the user's own that changes one of the tensors in place."""
        for step in self.steps:
            if step.in_place and any(step.inputs[:1] and step.inputs[0] is x for x in scores):
                return step.place
        return None


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, and in the lists and tuples that it is made of."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        for part in value:
            yield from tensors_in(part)


def code_folders(loss: Loss) -> set[str]:
    """Return the folders of the user's own classes; ours where there are none."""
    terms = [definition(term) for _, term in summands(loss)]
    kinds = [kind for term in terms for kind in getattr(term, "__mro__", (term,))]
    found = [k for k in kinds if not k.__module__.startswith(("torch.", "builtins"))]
    own = [kind for kind in found if not kind.__module__.startswith("contrastbench.")]
    files = {file for kind in own or found for file in source_files(kind)}
    return {os.path.dirname(file) for file in files}  # noqa: PTH120 - many frames, so fast


def caller() -> FrameType | None:
    """Return the frame that called the function of torch, outside of this module."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame


def frame_place(frame: FrameType | None, folders: set[str]) -> SourceLine | None:
    """Return the innermost line of the call that is the user's own."""
    while frame:
        file = frame.f_code.co_filename
        if os.path.dirname(file) == LAWS_FOLDER:  # noqa: PTH120 - who calls the check is further out
            return None
        if os.path.dirname(file) in folders:  # noqa: PTH120
            return SourceLine(file, frame.f_lineno)
        frame = frame.f_back
    return None


def error_place(error: BaseException, loss: Loss) -> SourceLine | None:
    """Return the innermost line of the user's own through which an error came."""
    own, place = code_folders(loss), None
    trace: TracebackType | None = error.__traceback__
    while trace:
        file = trace.tb_frame.f_code.co_filename
        if os.path.dirname(file) in own:  # noqa: PTH120
            place = SourceLine(file, trace.tb_lineno)
        trace = trace.tb_next
    return place or formula_place(loss)


def raised_by_check(error: BaseException) -> bool:
    """Return whether a check of this folder raised the error itself."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return bool(trace and os.path.dirname(trace.tb_frame.f_code.co_filename) == LAWS_FOLDER)  # noqa: PTH120


def formula_place(loss: Loss) -> SourceLine | None:
    """Return the line at which the user's own formula begins."""
    own = code_folders(loss)
    for _, term in summands(loss):
        for name in ("terms", "combine", "of_views", "forward"):
            code = getattr(getattr(definition(term), name, None), "__code__", None)
            if code and os.path.dirname(code.co_filename) in own:  # noqa: PTH120
                return SourceLine(code.co_filename, code.co_firstlineno)
    return None
