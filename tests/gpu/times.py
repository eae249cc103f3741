"""Time losses beside their peers, steps of ResNet-18, or small trainings, in one process.

    python tests/gpu/times.py losses cuda          # or steps, trainings; --tiny: a dry run

A loss is measured in units of three products of its scores' shape, one forward and two backward,
in the same precision. `bench perf losses` does the same with a process for each entry.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch.utils.flop_counter import FlopCounterMode

from contrastbench.benchmarks.perf.losses import PEERS, peak_megabytes, products, train_step
from contrastbench.benchmarks.perf.timing import best_of, run_seconds
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.compiling import ENCODER, STEP
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.errors import UserError
from contrastbench.losses import LossSpec, both_views, get_loss

LOSSES = (
    *("infonce", "infonce of lightly", "infonce of pytorch-metric-learning", "adnce", "decoupled"),
    *("decoupled of lightly", "supcon", "supcon of pytorch-metric-learning", "siglip", "spectral"),
)
QUADRATIC = 8192  # 2N above which a peer's table of scores would take the whole card
PRECISIONS = ("float32", "tf32", "bf16")
WHOLE = {"preset": "cpu", "width": 1.0, "precision": "bf16", "batch_size": 512}  # ResNet-18
Entry = Callable[[str, int, str], str]


def table(head: str, columns: list[str], rows: Iterator[tuple[str, list[str]]]) -> None:
    """Print a Markdown table, a row as soon as it is measured."""
    print(f"| {head} | " + " | ".join(columns) + " |\n| --- |" + " ---: |" * len(columns))
    for name, entries in rows:
        print(f"| {name} | " + " | ".join(entries) + " |", flush=True)
    print()


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Switch TensorFloat-32 on or off, and return the context of the precision."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    half = precision == "bf16"
    return torch.autocast(device.type, torch.bfloat16) if half else nullcontext()


def loss_entry(name: str, size: int, precision: str, device: torch.device) -> str:
    """Measure a loss in units of three products, and its memory on a card."""
    if name in PEERS and size > QUADRATIC:
        return "-"
    try:
        with autocast(device, precision):
            unit = best_of(products(size, device), device)
            step = train_step(name, size, device)
            step()  # what is loaded and chosen at a first step is no part of its time
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            before = peak_megabytes(device)
            seconds = best_of(step, device)
    except torch.OutOfMemoryError:
        return "out of memory"
    except UserError:  # the peer is not installed
        return "-"
    return f"{seconds / unit:.2f}x {peak_megabytes(device) - before:.0f} MB"


def losses(device: torch.device, sizes: tuple[int, ...]) -> None:
    """Print the table of losses."""
    columns = [*itertools.product(sizes, PRECISIONS)]
    rows = (
        (name, [loss_entry(name, size, precision, device) for size, precision in columns])
        for name in LOSSES
    )
    table("loss", [f"2N = {size}, {precision}" for size, precision in columns], rows)


def step_entry(width: float, batch: int, how: str, device: torch.device) -> str:
    """Measure a step of SimCLR on ResNet-18 at 32 pixels: operations and images a second."""
    precision = "float32" if how == "float32" else "bf16"
    recipe = make_recipe("image", {"precision": precision, "width": width, "size": 32})
    layout = torch.channels_last if "last" in how else torch.contiguous_format
    model = ImageModel(cast(ImageRecipe, recipe), 1).to(device).to(memory_format=layout)
    loss = get_loss("infonce")
    if "compiled" in how:
        model.compile()
    shape = (batch, 3, 32, 32)
    views = [torch.rand(shape, device=device).contiguous(memory_format=layout) for _ in range(2)]

    def step() -> None:
        model.zero_grad()
        loss(both_views(*[model(view) for view in views])).backward()

    with FlopCounterMode(display=False) as counter:
        ImageModel(cast(ImageRecipe, recipe), 1).to(device)(views[0]).sum().backward()
    step()  # compiles, or tries the kernels of cuDNN
    seconds = best_of(step, device, repeats=5)
    return f"{2 * counter.get_total_flops() / seconds / 1e12:.1f} TFLOP/s, {batch / seconds:.0f}/s"


def steps(device: torch.device, batch: int, widths: tuple[float, ...]) -> None:
    """Print the table of steps; the last way compiles, which may take half a minute."""
    ways = ["float32", "bf16", "bf16, channels last", "bf16, channels last, compiled"]
    rows = ((how, [step_entry(width, batch, how, device) for width in widths]) for how in ways)
    table(f"ResNet-18, batch {batch}", [f"x {width:g}" for width in widths], rows)


def step_milliseconds(
    work: Experiment, epochs: int, parts: list[str], data: Path | None, device: torch.device
) -> str:
    """Measure a step as the difference of two lengths; a first training loads and compiles."""
    seconds, steps = [], []
    for length in (1, 1, 1 + epochs):
        made = replace(work, recipe=work.recipe | {"epochs": length})
        domain, loss = open_domain(made, 0, data, device), get_loss("infonce").to(device)
        seconds.append(run_seconds(partial(train, domain, loss, compiled=parts), device))
        steps.append(length * domain.steps())
    return f"{1e3 * (seconds[2] - seconds[1]) / (steps[2] - steps[1]):.2f} ms"


def trainings(device: torch.device, tiny: bool, data: Path | None) -> None:
    """Print the table of trainings; steps of the small ones are bound by launches."""
    ways = {"as they are": [], "captured": [STEP], "compiled and captured": [ENCODER, STEP]}
    if device.type == "cpu":
        ways = {"as they are": []}
    small = {"pairing": "both_views"} | ({"limit": 100} if tiny else {})
    works = [
        (Experiment(name, declaration(name).default, LossSpec("infonce"), small), 1 if tiny else 20)
        for name in ("image", "tabular")
    ]
    if data:
        works.append((Experiment("image", "CIFAR-10", LossSpec("infonce"), WHOLE), 3))
    for work, epochs in works:
        row = [step_milliseconds(work, epochs, way, data, device) for way in ways.values()]
        table(f"a step on {work.dataset}", [*ways], iter([("infonce", row)]))


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("losses", "steps", "trainings"))
    parser.add_argument("device")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--data-root", type=Path, help="with CIFAR-10, on which ResNet-18 trains")
    asked = parser.parse_args()
    device = open_device(asked.device, deterministic=False)
    if asked.table == "trainings":
        trainings(device, asked.tiny, asked.data_root)
    elif asked.table == "losses":
        losses(device, (64,) if asked.tiny else (512, 8192, 65536))
    elif asked.tiny:
        steps(device, 4, (0.0625,))
    else:
        steps(device, 512, (1.0, 0.5))


if __name__ == "__main__":
    main()
