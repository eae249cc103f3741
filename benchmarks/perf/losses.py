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
from typing import Any

import torch
from torch import Tensor

from contrastbench.benchmarks.against.calls import Batch, CalledLoss
from contrastbench.benchmarks.perf.timing import CPU, medians, run_seconds, table_head
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.losses.registry import OURS, SUPERVISED
from contrastbench.losses.spec import LossSpec

SIZES = (512, 8192, 32768)  # 2N
SHORT_RUN = 0.1  # seconds
DEFAULT = tuple(OURS)
GIGABYTES = 8.0  # the limit of each cell
CLASSES, DIM = 100, 128  # of the embeddings
PROXIES = {"num_classes": CLASSES, "embedding_size": DIM}
Theirs = dict[str, tuple[str, dict[str, Any]]]  # by our name of the loss, theirs and its arguments
OF_LIGHTLY: Theirs = {
    "infonce": ("NTXentLoss", {"temperature": 0.5}),
    "decoupled": ("DCLLoss", {"temperature": 0.5}),
    "dcl_w": ("DCLWLoss", {"temperature": 0.5, "sigma": 0.5}),
    "macl": ("MACLLoss", {"temperature": 0.5, "alpha": 0.5, "A_0": 0.0}),
}
OF_METRIC_LEARNING: Theirs = {
    "infonce": ("NTXentLoss", {"temperature": 0.5}),
    "supcon": ("SupConLoss", {"temperature": 0.5}),
    "circle": ("CircleLoss", {"m": 0.4, "gamma": 80}),
    "triplet": ("TripletMarginLoss", {"margin": 0.2}),
    "lifted": ("GeneralizedLiftedStructureLoss", {"neg_margin": 1, "pos_margin": 0}),
    "proxy_anchor": ("ProxyAnchorLoss", {**PROXIES, "margin": 0.1, "alpha": 32}),
    "cross_entropy": ("NormalizedSoftmaxLoss", {**PROXIES, "temperature": 0.1}),
}
PEERS = {  # by row of the table
    **{
        f"{ours} of lightly": CalledLoss(f"lightly.loss:{name}", params)
        for ours, (name, params) in OF_LIGHTLY.items()
    },
    **{
        f"{ours} of pytorch-metric-learning": CalledLoss(
            f"pytorch_metric_learning.losses:{name}", params, "same_class"
        )
        for ours, (name, params) in OF_METRIC_LEARNING.items()
    },
}


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
    yield "Time: 1x is that of the three matrix products of any loss; memory: growth of the peak.\n"
    yield table_head(" | ".join(["loss", *(f"2N = {size}" for size in sizes)]))
    beside = {name: [row for row in PEERS if row.startswith(f"{name} of ")] for name in losses}
    for row in [row for name in losses for row in (name, *beside[name])]:
        yield f"| {row} | " + " | ".join(measured_entry(row, size, device) for size in sizes) + " |"


def measured_entry(
    name: str, size: int, device: torch.device = CPU, gigabytes: float = GIGABYTES
) -> str:
    """Return one entry of the table, measured in a process of its own."""
    command = [sys.executable, "-m", "contrastbench.benchmarks.perf.losses"]
    command += map(str, (name, size, device, gigabytes))
    # bytes; fixed thresholds are not raised at the first large block freed, and blocks of rows
    # below them are used again, as beside a network, whose activations have raised them
    allocator = {"MALLOC_MMAP_THRESHOLD_": "2000000", "MALLOC_TRIM_THRESHOLD_": "16000000"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **allocator}
    )
    if done.returncode:
        over = f"over {gigabytes:g} GB" if device.type == "cpu" else "out of memory"
        known = {"memory": over, "not installed": "not installed"}
        return next((said for word, said in known.items() if word in done.stderr.lower()), "failed")
    measured = json.loads(done.stdout.splitlines()[-1])
    return f"{measured['seconds'] / measured['unit']:.2f}x {measured['megabytes']:.0f} MB"


def measure_loss(name: str, size: int, device: torch.device, gigabytes: float) -> dict[str, float]:
    """Seconds of the loss and of the unit, and the growth of the peak memory in megabytes."""
    if device.type == "cpu":  # CUDA's libraries claim addresses that no limit would leave them
        resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 1e9), int(gigabytes * 1e9)))
    torch.set_num_threads(1)
    step = train_step(name, size, device)
    # what torch loads at its first blocks, 40 MB, is not the loss's
    train_step(name, 1024, device)()
    before = peak_megabytes(device)
    first = min(run_seconds(step, device) for _ in range(2))
    megabytes = peak_megabytes(device) - before
    rounds = 3 if first > SHORT_RUN else 100  # what takes milliseconds is hit by others' work
    seconds, unit = medians([step, products(size, device)], rounds, device)
    return {"seconds": seconds, "unit": unit, "megabytes": megabytes}


def train_step(name: str, size: int, device: torch.device = CPU) -> Callable[[], None]:
    """Return a function that runs forward and backward of a loss, or of a peer by its row."""
    views = embeddings(size, device)
    samples = torch.arange(size // 2, device=device)
    classes = samples % CLASSES if name.split()[0] in SUPERVISED else samples
    if name in PEERS:
        theirs, batch = PEERS[name].make(torch.float32, device), Batch(views[0], views[1], classes)
        return lambda: theirs(batch).backward()
    from contrastbench.losses import both_views, get_loss, indexed, same_class

    ours = get_loss(name)
    if ours.needs_classes:
        ours.prepare(CLASSES, DIM)
    ours.prepare_samples(len(samples))
    ours.to(device)
    pairing = partial(same_class, labels=classes) if ours.needs_classes else both_views
    return lambda: ours(indexed(pairing(views[0], views[1]), samples)).backward()


def embeddings(size: int, device: torch.device) -> list[Tensor]:
    """Two views of size / 2 samples, the same numbers on every device."""
    rng = torch.Generator().manual_seed(0)
    drawn = [torch.randn(size // 2, DIM, generator=rng) for _ in range(2)]
    return [view.to(device).requires_grad_() for view in drawn]


def products(size: int, device: torch.device = CPU) -> Callable[[], None]:
    """The three matrix products, by rows where the matrix would be too large to hold."""
    z = torch.randn(size, DIM, device=device)
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
    name, size, device, limit = sys.argv[1:]
    measured = measure_loss(name, int(size), open_device(device), float(limit))
    print(json.dumps(measured))
