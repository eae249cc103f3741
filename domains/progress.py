"""Progress on standard error: a bar on a terminal, a line every 30 seconds elsewhere.

A line that says nothing new comes after twice the time, then twice that.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import length_hint
from typing import TypeVar

from tqdm import tqdm

from contrastbench.errors import printable, tell

SECONDS_BETWEEN_LINES = 30
T = TypeVar("T")


def tracked(items: Iterable[T], task: str, total: int | None = None) -> Iterator[T]:
    """Yield items with progress; how many they are need not be told of lists and ranges."""
    with Progress(total or length_hint(items), task) as progress:
        for item in items:
            yield item
            progress.step()


class Progress:
    """Counts steps of known number.

    >>> with Progress(2, "training") as progress:
    ...     progress.step("loss 0.1")
    """

    def __init__(self, total: int, task: str, done: int = 0) -> None:
        self.total, self.task, self.done = total, task, done
        self.last_line, self.said, self.wait = time.monotonic(), "", SECONDS_BETWEEN_LINES
        # tqdm draws nothing on a terminal that has no size, as some programs open them
        screen = 0
        with suppress(OSError, AttributeError):  # a stream of a program is no file
            screen = sys.stderr.isatty() and os.get_terminal_size(sys.stderr.fileno()).lines
        self.bar = tqdm(
            total=total,
            initial=done,
            desc=printable(task),
            file=sys.stderr,
            leave=False,
            disable=not screen,
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def step(self, note: str = "", size: int = 1) -> None:
        self.done += size
        self.bar.set_postfix_str(printable(note), refresh=False)
        self.bar.update(size)
        self.line(note)

    def write(self, text: str) -> None:
        """A line that stays: above the bar, or in the log."""
        with suppress(OSError):  # a log on a full disk costs no training
            tqdm.write(printable(text), file=sys.stderr)

    def line(self, note: str) -> None:
        """Off a terminal: a line, if it is time for one."""
        text = f"{self.task}: {self.done} of {self.total} {note}".rstrip()
        wait = self.wait if text == self.said else SECONDS_BETWEEN_LINES
        if self.bar.disable and time.monotonic() - self.last_line >= wait:
            self.last_line, self.said, self.wait = time.monotonic(), text, 2 * wait
            tell(text)
