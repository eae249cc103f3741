"""Measure times for the benchmarks that print ratios."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from joblib import cpu_count

from contrastbench.benchmarks.running.devices import environment, synchronize

CPU = torch.device("cpu")
Work = Callable[[], Any]


def run_seconds(work: Work, device: torch.device = CPU) -> float:
    """Return the seconds of one run, until the device has finished too."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def medians(works: Sequence[Work], rounds: int, device: torch.device = CPU) -> list[float]:
    """Return the median seconds of each work over rounds in which they take turns.

    One round before them warms up: a busy machine is busy for all works.
    """
    taken = [[run_seconds(work, device) for work in works] for _ in range(rounds + 1)]
    return [median(column) for column in zip(*taken[1:], strict=True)]


def measured_on(device: torch.device) -> str:
    """Return device, machine and versions, without which a time has no meaning."""
    about = environment(device)
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    switches = [f"{key} {about[key]}" for key in ("deterministic", "tf32") if key in about]
    words = [f"{about['device']}, {cpu_count()} cores", versions, *switches]
    return "; ".join([*words, f"commit {about['commit'] or '-'}"])


def table_head(titles: str, words: int = 1) -> str:
    """Return the first two lines of a table, whose first columns are words and others numbers.

    >>> print(table_head("set | time"))
    | set | time |
    | --- | ---: |
    """
    numbers = titles.count(" | ") + 1 - words
    return f"| {titles} |\n|{' --- |' * words}{' ---: |' * numbers}"
