"""Time and memory of the losses beside other libraries': `python -m contrastbench.benchmarks.perf_losses`.

Forward and backward of a loss over 2N embeddings of 128 dimensions. The unit of time is the three matrix products that
any dense version needs, one forward and two backward, measured in the same process. Memory is what the peak grows by.
Each cell is a process of its own, with a limit on its memory, so that one that needs too much ends alone.
"""

import argparse
import importlib
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

SIZES = (512, 2048, 8192, 32768)
OURS = ("infonce", "adnce", "hcl", "debiased", "mean_variance", "rmlcpc")
PEERS = {"lightly": "lightly", "pytorch-metric-learning": "pytorch_metric_learning"}  # name -> module
DIM = 128


def main(arguments: list[str] | None = None) -> None:
    """Print the table, row by row as it is measured."""
    parser = argparse.ArgumentParser(description="Time and peak memory of contrastive losses.")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of embeddings, 2N")
    parser.add_argument("--losses", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", type=float, default=8, help="limit for each cell in GB")
    parser.add_argument("--cell", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.cell:
        print(json.dumps(measure(options.losses[0], options.sizes[0], options.threads, options.memory)))
        return
    print(f"{'loss':24}" + "".join(f"{f'2N = {size}':>22}" for size in options.sizes), flush=True)
    for name in options.losses:
        cells = (cell(name, size, options.threads, options.memory) for size in options.sizes)
        print(f"{name:24}" + "".join(f"{text:>22}" for text in cells), flush=True)
    print("time in units of three matrix products, growth of the peak memory")


def cell(name: str, size: int, threads: int, memory: float) -> str:
    """One entry of the table, from a process of its own."""
    if name in PEERS and importlib.util.find_spec(PEERS[name]) is None:
        return "not installed"
    command = [sys.executable, "-m", __spec__.name, "--cell", "--losses", name, "--sizes", str(size)]
    command += ["--threads", str(threads), "--memory", str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"over {memory:g} GB" if "memory" in done.stderr else "failed"
    found = json.loads(done.stdout.splitlines()[-1])
    return f"{found['seconds'] / found['unit']:.2f}x {found['megabytes']:.0f} MB"


def measure(name: str, size: int, threads: int, memory: float) -> dict[str, float]:
    """Seconds of the loss and of the unit, and the growth of the peak memory in megabytes."""
    import torch

    resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 1e9), int(memory * 1e9)))
    torch.set_num_threads(threads)
    step = train_step(name, size)
    train_step(name, 8, {"tile": 4})()  # what torch loads at its first step, 40 MB of it, is not the loss's
    before = peak_megabytes()
    seconds = best_of(step)
    megabytes = peak_megabytes() - before
    return {"seconds": seconds, "unit": best_of(products(size)), "megabytes": megabytes}


def train_step(name: str, size: int, options: Mapping[str, int] = MappingProxyType({})) -> Callable[[], None]:
    """Forward and backward of a loss, ours with such options."""
    import torch

    views = torch.randn(2, size // 2, DIM, generator=torch.Generator().manual_seed(0)).requires_grad_()
    if name == "lightly":
        lightly = importlib.import_module("lightly.loss").NTXentLoss(temperature=0.5)
        return lambda: lightly(views[0], views[1]).backward()
    if name == "pytorch-metric-learning":
        metric_learning = importlib.import_module("pytorch_metric_learning.losses").NTXentLoss(temperature=0.5)
        labels = torch.arange(size // 2).repeat(2)
        return lambda: metric_learning(views.flatten(0, 1), labels).backward()
    from contrastbench.benchmarks.battery import configured
    from contrastbench.losses import both_views, get_loss

    ours = configured(get_loss(name), options)
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


def best_of(step: Callable[[], None], repeats: int = 3) -> float:
    """The shortest of a few runs after one to warm up, in seconds."""
    step()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak_megabytes() -> float:
    """The largest memory that this process has held."""
    scale = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6


if __name__ == "__main__":
    main()
