"""Signals that wait until a step of the training is done."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Holds back SIGTERM and Ctrl-C until the step is done; a second Ctrl-C ends at once.

    SIGTERM may come from several sides, as from Slurm and from the sweep that Slurm has asked, too.
    """

    def __init__(self) -> None:
        self.signal = 0  # none yet
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
        """The first signal is remembered."""
        self.signal = self.signal or number
        if number == signal.SIGINT:
            self.__exit__(None, None, None)

    def stop_if_asked(self) -> None:
        """Raise what the signal stands for."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal:
            raise SystemExit(128 + self.signal)
