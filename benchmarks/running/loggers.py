"""Hand the scalars of a training to TensorBoard, and to loggers that packages announce.

A package announces a logger by an entry point of the group `contrastbench.loggers`. It is a class
whose constructor takes the training's name, such as graph/MUTAG/adnce/KEY-seed0, and its settings.
Its method `log` takes a name, a value and a step, and `close` takes nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol

from contrastbench.benchmarks.records.writable import prepare_output
from contrastbench.benchmarks.running.training import Log
from contrastbench.errors import UserError, printable, tell, unknown, users_code

GROUP = "contrastbench.loggers"


class Logger(Protocol):
    """The methods of a logger."""

    def log(self, name: str, value: float, step: int) -> None:
        """Take the value of a scalar at a step."""

    def close(self) -> None:
        """End with the training."""


class TensorBoard:
    """TensorBoard's writer as a logger."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder))

    def log(self, name: str, value: float, step: int) -> None:
        self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


def check_loggers(board: Path | None, logger: str | None) -> None:
    """Raise unless TensorBoard's writer or the named logger can be loaded, where it is asked for.

    Raises:
        UserError: it is not installed, or its folder cannot be written to.
    """
    if logger is not None:
        logger_class(logger)
    if board is None:
        return
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        fix = 'pip install "contrastbench[tensorboard]"'
        raise UserError(f"--tensorboard needs tensorboard, which is not installed: {fix}") from None
    prepare_output(board, "--tensorboard")


def logger_class(name: str) -> Callable[[str, dict[str, Any]], Logger]:
    """Return the class of a logger.

    Raises:
        UserError: no installed package announces it, or it cannot be imported.
    """
    known: dict[str, EntryPoint] = {one.name: one for one in entry_points(group=GROUP)}
    if not known:
        raise UserError(
            f"--logger {name}: no package announces a logger: install one with an entry point of "
            f"the group {GROUP}"
        )
    if name not in known:
        raise unknown("logger", name, known)
    with users_code(f"import the logger {name}, {known[name].value}"):
        found: Callable[[str, dict[str, Any]], Logger] = known[name].load()
    return found


@contextmanager
def scalars(
    board: Path | None, logger: str | None, name: str, settings: Mapping[str, Any]
) -> Iterator[Log | None]:
    """Yield a function that takes scalars by name and step; None where nobody wants them.

    Args:
        board: a folder for TensorBoard.
        logger: the name of a logger.
        name: of the training, for the logger.
        settings: what was trained, for the logger.
    """
    makers: dict[str, Callable[[], Logger]] = {}
    if board is not None:
        makers[f"--tensorboard {board}"] = partial(TensorBoard, board)
    if logger is not None:
        makers[f"the logger {logger}"] = partial(logger_class(logger), name, dict(settings))
    with ExitStack() as stack:
        takers = [stack.enter_context(guarded_logger(*about)) for about in makers.items()]

        def log(scalar: str, value: float, step: int) -> None:
            for take in takers:
                take(scalar, value, step)

        yield log if takers else None


@contextmanager
def guarded_logger(name: str, make: Callable[[], Logger]) -> Iterator[Log]:
    """Yield a function that hands scalars to a logger until the logger fails.

    The training goes on without a logger that fails, for example where a network is gone or a disk
    is full.
    """
    running: list[Logger] = []

    def attempt(do: Callable[..., object], *values: Any) -> None:
        try:
            do(*values)
        except Exception as error:
            running.clear()
            cause = printable(f"{type(error).__name__}: {error}".splitlines()[0])
            tell(f"{name} failed ({cause}): the training goes on without it")

    def log(scalar: str, value: float, step: int) -> None:
        for one in tuple(running):
            attempt(one.log, scalar, float(value), step)

    def start() -> None:
        running.append(make())

    attempt(start)
    try:
        yield log
    finally:
        for one in tuple(running):
            attempt(one.close)
