"""`bench perf losses`: time and memory of a step, beside other libraries'.

Forward and backward of a loss over 2N embeddings of 128 dimensions. The unit of time is the three
matrix products that any dense version needs, one forward and two backward, measured in the same
process. Memory is what the peak grows by,
with an allocator that gives large blocks back: glibc's default keeps some, up to twice as much
here. Each cell is a process of its own, with a limit on its memory, so that one that needs too much
ends alone.
"""

import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from contrastbench.benchmarks.perf.timing import best_of
from contrastbench.losses.registry import complete

SIZES = (512, 2048, 8192, 32768)  # 2N
PEERS = {
    "lightly": "lightly",
    "pytorch-metric-learning": "pytorch_metric_learning",
}  # name -> module
DEFAULT = ("infonce", "adnce", "hcl", "debiased", "mean_variance", "rmlcpc", *PEERS)
DIM = 128
GIGABYTES = 8.0  # the limit of each cell


def report(
    losses: list[str], _: Path | None = None, sizes: tuple[int, ...] = SIZES
) -> Iterator[str]:
    """A Markdown table, a line at a time.

    Units of three matrix products, growth of the peak memory; one thread.
    """
    for name in losses:
        if name not in PEERS:
            complete(name, {})  # an unknown one is named at once
    yield "| loss | " + " | ".join(f"2N = {size}" for size in sizes) + " |"
    yield "| --- |" + " ---: |" * len(sizes)
    for name in losses:
        yield f"| {name} | " + " | ".join(cell(name, size) for size in sizes) + " |"


def cell(name: str, size: int, gigabytes: float = GIGABYTES) -> str:
    """One entry of the table, from a process of its own."""
    if name in PEERS and importlib.util.find_spec(PEERS[name]) is None:
        return "not installed"
    command = [
        sys.executable,
        "-m",
        "contrastbench.benchmarks.perf.losses",
        name,
        str(size),
        str(gigabytes),
    ]
    allocator = {
        "MALLOC_MMAP_THRESHOLD_": "1000000"
    }  # bytes; a fixed one is not raised at the first large block freed
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **allocator}
    )
    if done.returncode:
        return f"over {gigabytes:g} GB" if "memory" in done.stderr else "failed"
    found = json.loads(done.stdout.splitlines()[-1])
    return f"{found['seconds'] / found['unit']:.2f}x {found['megabytes']:.0f} MB"


def measure(name: str, size: int, gigabytes: float) -> dict[str, float]:
    """Seconds of the loss and of the unit, and the growth of the peak memory in megabytes."""
    import torch

    resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 1e9), int(gigabytes * 1e9)))
    torch.set_num_threads(1)
    step = train_step(name, size)
    train_step(name, 512)()  # what torch loads at its first step, 40 MB of it, is not the loss's
    before = peak_megabytes()
    seconds = best_of(step)
    megabytes = peak_megabytes() - before
    return {"seconds": seconds, "unit": best_of(products(size)), "megabytes": megabytes}


def train_step(name: str, size: int) -> Callable[[], None]:
    """Forward and backward of a loss."""
    import torch

    rng = torch.Generator().manual_seed(0)
    views = [torch.randn(size // 2, DIM, generator=rng).requires_grad_() for _ in range(2)]
    if name == "lightly":
        lightly = importlib.import_module("lightly.loss").NTXentLoss(temperature=0.5)
        return lambda: lightly(views[0], views[1]).backward()
    if name == "pytorch-metric-learning":
        metric_learning = importlib.import_module("pytorch_metric_learning.losses").NTXentLoss(
            temperature=0.5
        )
        labels = torch.arange(size // 2).repeat(2)
        return lambda: metric_learning(torch.cat(views), labels).backward()
    from contrastbench.losses import both_views, get_loss

    ours = get_loss(name)
    return lambda: ours(both_views(views[0], views[1])).backward()


def products(size: int) -> Callable[[], None]:
    """The three matrix products, by rows where the matrix would be too large to hold."""
    import torch

    z = torch.randn(size, DIM)

    def run() -> None:
        for start in range(0, size, 2048):
            rows = z[start : start + 2048]
            scores = rows @ z.T
            _ = scores @ z, scores.T @ rows

    return run


def peak_megabytes() -> float:
    """The largest memory that this process has held."""
    scale = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
