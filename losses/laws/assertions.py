"""Helpers of the checks: values, gradients, how close two of them are, and a user's own lines."""

import linecache
import math
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import FrameType

from torch import Tensor

from contrastbench.losses import blocks
from contrastbench.losses.base import Loss, definition, summands
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws.random_contrasts import PairingFunction
from contrastbench.losses.source import source_files

LAWS_FOLDER = os.path.dirname(__file__)  # noqa: PTH120
Build = Callable[..., Loss]  # makes the loss in float64, with some parameters changed


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


@dataclass(frozen=True)
class Law:
    """A check of a loss, a domain or a device, what its failure means, and what usually helps then.

    A check raises AssertionError, and may return what it has found.
    """

    check: Callable[..., str | None]
    wrong: str = ""  # "": its message says it
    remedy: str = ""

    @property
    def name(self) -> str:
        return self.check.__name__.removeprefix("check_").replace("_", " ")

    def __call__(self, build: Build, seed: int) -> str | None:
        return self.check(build, seed)


def law(wrong: str, remedy: str) -> Callable[[Callable[..., None]], Law]:
    return lambda check: Law(check, wrong, remedy)


class Wrong(AssertionError):
    """A failed check that knows its cause: what is wrong, what helps, and the user's line."""

    def __init__(self, message: str, remedy: str = "", place: SourceLine | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.place = place


class Remark(Exception):
    """Something that a user should know of a loss that has passed a check."""


def value_and_gradient(loss: Loss, contrast: Contrast, views: Sequence[Tensor]) -> list[Tensor]:
    """The loss, and what it sends back to each view and to each parameter of its own."""
    value = loss(contrast)
    leaves = [*views, *learned_parameters(loss)]
    return [value, *blocks.gradients(value, leaves, retain_graph=True)]


def learned_parameters(loss: Loss) -> list[Tensor]:
    return [parameter for parameter in loss.parameters() if parameter.requires_grad]


def configured(loss: Loss, options: Mapping[str, int]) -> Loss:
    for module in loss.modules():
        for name, value in options.items():
            if hasattr(module, name):
                setattr(module, name, value)
    return loss


def assert_finite(
    loss: Loss, pairing: PairingFunction, views: Sequence[Tensor], bound: float = math.inf
) -> None:
    leaves = [v.detach().clone().requires_grad_() for v in views]
    value, *gradients = value_and_gradient(loss, pairing(leaves), leaves)
    assert value.abs() < bound, f"the loss is {value.item()}"
    for gradient in gradients:
        assert gradient.isfinite().all(), "a gradient is not finite"
        assert gradient.abs().max() < bound, f"a gradient is {gradient.abs().max().item()}"


def check_close(value: Tensor, expected: Tensor, tolerance: float) -> None:
    """Fail unless numbers agree, relative to the largest of the expected ones, or to 1."""
    scale = max(1.0, expected.abs().max().item())
    error = (value - expected).abs().max().item()
    assert error <= tolerance * scale, (
        f"{error:.2g} apart from {expected.abs().max().item():.6g}, more than {tolerance:g}"
    )


def raises_value_error(call: Callable[[], object], mistake: str) -> None:
    try:
        call()
    except ValueError:
        return
    raise AssertionError(f"{mistake} does not raise ValueError")
