"""Hand the scalars of a training to TensorBoard."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.writable import prepare_output
from contrastbench.benchmarks.running.training import Log
from contrastbench.errors import UserError, printable, tell


def check_tensorboard(board: Path) -> None:
    """Raise unless TensorBoard's writer can be loaded, and its folder written to.

    Raises:
        UserError: it is not installed, or its folder cannot be written to.
    """
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        fix = 'pip install "contrastbench[tensorboard]"'
        raise UserError(f"--tensorboard needs tensorboard, which is not installed: {fix}") from None
    prepare_output(board, "--tensorboard")


@contextmanager
def scalars(board: Path) -> Iterator[Log]:
    """Yield a function that takes a scalar's name, value and step.

    The training goes on without a writer that fails, for example where a disk is full.
    """
    from torch.utils.tensorboard import SummaryWriter

    running: list[Any] = []

    def attempt(do: Callable[..., object], *values: Any) -> None:
        try:
            do(*values)
        except Exception as error:
            running.clear()
            cause = printable(f"{type(error).__name__}: {error}".splitlines()[0])
            tell(f"--tensorboard {board} failed ({cause}): the training goes on without it")

    def log(name: str, value: float, step: int) -> None:
        for writer in tuple(running):
            attempt(writer.add_scalar, name, float(value), step)

    attempt(lambda: running.append(SummaryWriter(str(board))))
    try:
        yield log
    finally:
        for writer in tuple(running):
            attempt(writer.close)
