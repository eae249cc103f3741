"""SIGTERM and Ctrl-C: what is being trained ends after its step, and leaves a checkpoint."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

TERMINATED = 128 + signal.SIGTERM
asked_to_end = threading.Event()


def end_on_sigterm() -> None:
    """Let SIGTERM end the process by `SystemExit(143)` from now on."""
    signal.signal(signal.SIGTERM, terminate)


def terminate(number: int, frame: FrameType | None) -> None:
    """Remember the signal and raise, since C++ that calls Python may replace the exception."""
    asked_to_end.set()
    sys.exit(TERMINATED)


@contextmanager
def termination_kept() -> Iterator[None]:
    """Turn any error after SIGTERM into `SystemExit(143)`, so that it is no failure."""
    try:
        yield
    except Exception as error:
        if asked_to_end.is_set():
            raise SystemExit(TERMINATED) from error
        raise


class Interruption:
    """Holds back SIGTERM and Ctrl-C until the step is done; a second Ctrl-C ends at once.

    SIGTERM may come from several sides, as from Slurm and from the sweep that Slurm has asked, too.
    An earlier one counts whose exception was lost, as in pydantic, which calls Python from Rust.
    """

    def __init__(self) -> None:
        self.signal: int = signal.SIGTERM if asked_to_end.is_set() else 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            self.before = {
                number: signal.signal(number, self.note)
                for number in (signal.SIGTERM, signal.SIGINT)
            }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal."""
        self.signal = self.signal or number
        if number == signal.SIGINT:
            self.__exit__(None, None, None)

    def stop_if_asked(self) -> None:
        """Raise what the signal stands for."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal:
            raise SystemExit(128 + self.signal)
