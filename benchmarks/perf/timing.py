"""How long things take, for the benchmarks that print ratios."""

import time
from collections.abc import Callable
from typing import Any


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(work: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of a few runs after one to warm up, in seconds."""
    work()
    return min(seconds(work) for _ in range(repeats))
