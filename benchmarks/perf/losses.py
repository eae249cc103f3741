"""`bench perf losses`: time and memory of a step of each loss, beside other libraries'.

Forward and backward of a loss over 2N embeddings of 128 dimensions. The unit of time is the three
matrix products that any dense version needs, one forward and two backward, measured in the same
process.
Memory is what the peak grows by: of the device on CUDA, where its size is the limit; of the process
on a CPU, with an allocator that gives large blocks back: glibc's default keeps some, up to twice as
much here. Each cell is a process of its own, on a CPU with a limit on its memory, so that one that
needs too much ends alone.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from contrastbench.benchmarks.perf import peers
from contrastbench.benchmarks.perf.peers import PEER_CLASSES, PEER_DIM, PEERS
from contrastbench.benchmarks.perf.timing import CPU, best_of
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.losses.registry import OURS, SUPERVISED
from contrastbench.losses.spec import LossSpec

SIZES = (512, 8192, 32768)  # 2N
DEFAULT = tuple(OURS)
GIGABYTES = 8.0  # the limit of each cell


def report(
    losses: list[str],
    _: Path | None = None,
    device: torch.device = CPU,
    sizes: tuple[int, ...] | None = None,
) -> Iterator[str]:
    """Yield the lines of a Markdown table, with the peers of each loss below it.

    Units of three matrix products, growth of the peak memory; one thread.
    """
    for name in losses:
        LossSpec(name).check()  # an unknown one is named at once
    sizes = sizes or (SIZES[:-1] if device.type == "cpu" else SIZES)  # the last takes minutes there
    yield "| loss | " + " | ".join(f"2N = {size}" for size in sizes) + " |"
    yield "| --- |" + " ---: |" * len(sizes)
    for row in [row for name in losses for row in (name, *peers.peers_of(name))]:
        yield f"| {row} | " + " | ".join(measured_entry(row, size, device) for size in sizes) + " |"


def measured_entry(
    name: str, size: int, device: torch.device = CPU, gigabytes: float = GIGABYTES
) -> str:
    """Return one entry of the table, measured in a process of its own."""
    if name in PEERS and not PEERS[name].installed:
        return "not installed"
    command = [
        sys.executable,
        "-m",
        "contrastbench.benchmarks.perf.losses",
        name,
        str(size),
        str(device),
        str(gigabytes),
    ]
    allocator = {
        "MALLOC_MMAP_THRESHOLD_": "1000000"
    }  # bytes; a fixed one is not raised at the first large block freed
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **allocator}
    )
    if done.returncode:
        over = f"over {gigabytes:g} GB" if device.type == "cpu" else "out of memory"
        return over if "memory" in done.stderr else "failed"
    found = json.loads(done.stdout.splitlines()[-1])
    return f"{found['seconds'] / found['unit']:.2f}x {found['megabytes']:.0f} MB"


def measure_loss(name: str, size: int, device: torch.device, gigabytes: float) -> dict[str, float]:
    """Seconds of the loss and of the unit, and the growth of the peak memory in megabytes."""
    if device.type == "cpu":  # CUDA's libraries claim addresses that no limit would leave them
        resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 1e9), int(gigabytes * 1e9)))
    torch.set_num_threads(1)
    step = train_step(name, size, device)
    train_step(name, 512, device)()  # what torch loads at its first step, 40 MB, is not the loss's
    before = peak_megabytes(device)
    seconds = best_of(step, device)
    megabytes = peak_megabytes(device) - before
    unit = best_of(products(size, device), device)
    return {"seconds": seconds, "unit": unit, "megabytes": megabytes}


def train_step(name: str, size: int, device: torch.device = CPU) -> Callable[[], None]:
    """Return a function that runs forward and backward of a loss, or of a peer by its row."""
    views = embeddings(size, device)
    samples = torch.arange(size // 2, device=device)
    classes = samples % PEER_CLASSES if name.split()[0] in SUPERVISED else samples
    if name in PEERS:
        peer, theirs = PEERS[name], PEERS[name].make().to(device)
        return lambda: peer.value(theirs, views, classes).backward()
    from contrastbench.losses import both_views, get_loss, indexed, same_class

    ours = get_loss(name)
    if ours.needs_classes:
        ours.prepare(PEER_CLASSES, PEER_DIM)
    ours.prepare_samples(len(samples))
    ours.to(device)
    pairing = partial(same_class, labels=classes) if ours.needs_classes else both_views
    return lambda: ours(indexed(pairing(views[0], views[1]), samples)).backward()


def embeddings(size: int, device: torch.device) -> list[Tensor]:
    """Two views of size / 2 samples, the same numbers on every device."""
    rng = torch.Generator().manual_seed(0)
    drawn = [torch.randn(size // 2, PEER_DIM, generator=rng) for _ in range(2)]
    return [view.to(device).requires_grad_() for view in drawn]


def products(size: int, device: torch.device = CPU) -> Callable[[], None]:
    """The three matrix products, by rows where the matrix would be too large to hold."""
    z = torch.randn(size, PEER_DIM, device=device)
    height = 2048 if device.type == "cpu" else 32768

    def run() -> None:
        for start in range(0, size, height):
            rows = z[start : start + height]
            scores = rows @ z.T
            _ = scores @ z, scores.T @ rows

    return run


def peak_megabytes(device: torch.device) -> float:
    """The most memory that the device has held for this process, or the process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    scale = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6


if __name__ == "__main__":
    measured = measure_loss(
        sys.argv[1], int(sys.argv[2]), open_device(sys.argv[3]), float(sys.argv[4])
    )
    print(json.dumps(measured))
