"""Measure times for the benchmarks that print ratios."""

import time
from collections.abc import Callable
from typing import Any

import torch

from contrastbench.benchmarks.running.devices import synchronize

CPU = torch.device("cpu")
LONG_RUN = 5.0  # seconds: beside them neither a first run's overhead nor the clock matters


def run_seconds(work: Callable[[], Any], device: torch.device = CPU) -> float:
    """Return the seconds of one run, until the device has finished too."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def best_of(work: Callable[[], Any], device: torch.device = CPU, repeats: int = 3) -> float:
    """Seconds of the shortest run after one to warm up; a long first run is the only one."""
    first = run_seconds(work, device)
    return first if first > LONG_RUN else min(run_seconds(work, device) for _ in range(repeats))
