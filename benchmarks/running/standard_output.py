"""Keep standard output for what programs read."""

import os
from typing import IO


def private_channel() -> IO[str]:
    """Return standard output, and send other output to standard error.

    A user's loss may print, and its words belong to standard error from now on.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel
