"""Say on a terminal that torch is being imported, which may take seconds."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from contrastbench.errors import tell

NOTICE_SECONDS = 1.0  # seconds


@contextmanager
def loading() -> Iterator[None]:
    """Say that torch is loading if the block takes longer than a second on a terminal."""
    timer = threading.Timer(NOTICE_SECONDS, announce_loading)
    if sys.stderr.isatty() and "torch" not in sys.modules:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def announce_loading() -> None:
    """Print that torch is being loaded."""
    tell("loading torch ...")
