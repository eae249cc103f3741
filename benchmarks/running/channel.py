"""Standard output for what programs read, and for nothing else."""

import os
from typing import IO


def private_channel() -> IO[str]:
    """What was standard output.

    A user's loss may print, and its words belong to standard error from now on.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel
