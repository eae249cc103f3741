"""Time and memory of a step of two losses, side by side."""

import json
import tempfile
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from contrastbench.benchmarks.against.batches import random_batch
from contrastbench.benchmarks.against.sides import Side
from contrastbench.benchmarks.perf.timing import best_of


def ratios(first: Side, other: Side, size: int) -> tuple[float, float]:
    """Return time and peak memory of the first relative to the other, in float32 on a CPU."""
    one, two = step(first, size), step(other, size)
    return best_of(one) / best_of(two), peak_bytes(one) / max(1, peak_bytes(two))


def step(side: Side, size: int) -> Callable[[], None]:
    """Return a step: forward and backward."""
    loss, batch = side.make(torch.float32), random_batch(size, 0).leaves(torch.float32)

    def run() -> None:
        torch.autograd.grad(loss(batch), [batch.z1, batch.z2], allow_unused=True)

    return run


def peak_bytes(work: Callable[[], None]) -> int:
    """Return by how much the memory of all tensors grows at most within a step."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        record.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    memory = sorted(
        (event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]"
    )
    return max(accumulate((size for _, size in memory), initial=0))
