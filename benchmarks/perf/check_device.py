"""Check for `bench check-device` that a device agrees with a CPU, and measure its speed.

What a user runs once on a new machine. Each check returns what it found; what it raises is a
failure, and the next one follows.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch
from joblib import cpu_count
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from contrastbench.benchmarks.perf import losses as perf_losses
from contrastbench.benchmarks.perf.timing import best_of
from contrastbench.benchmarks.records.device_report import DeviceReport
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import devices, domain_laws
from contrastbench.benchmarks.running.environment import environment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import open_domain, run_cell
from contrastbench.benchmarks.running.training import AnyDomain, Look, Run, train
from contrastbench.domains.registry import (
    DOMAINS,
    declaration,
    domain_class,
    make_recipe,
)
from contrastbench.errors import UserError, is_termination
from contrastbench.losses import LOSSES, get_loss, same_class
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws.assertions import value_and_gradient
from contrastbench.losses.laws.battery import prepared_loss
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, numbered_samples, random_views
from contrastbench.losses.spec import LossSpec

MINUTES = 10  # after which no check is begun
# how far value and gradients may be from the CPU's, as a share of the largest entry if that is
# above 1: sums in another order
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4}
# losses whose memory and time at 2N = 32,768 (CPU: 8,192) are told
LARGE_LOSSES = ("infonce", "adnce")
CELL_LOSS = "adnce"
MAX_OTHER_LOAD = 0.5  # of each CPU by others, above which speeds are said to be too low


@dataclass(frozen=True)
class DeviceWork:
    """The device that is checked, and the size of the work."""

    device: torch.device
    domains: tuple[str, ...] = tuple(DOMAINS)
    losses: tuple[str, ...] = tuple(LOSSES)
    small: bool = False  # sizes for a test of the checks themselves

    def size(self, small: int, cpu: int, cuda: int) -> int:
        """Choose a size for a small check, a CPU or a CUDA device."""
        return small if self.small else cuda if self.device.type == "cuda" else cpu

    @property
    def installed(self) -> tuple[str, ...]:
        """Return the domains whose libraries are installed."""
        found = []
        for name in self.domains:
            with suppress(UserError):
                domain_class(name)
                found.append(name)
        return tuple(found)

    def open(self, name: str) -> AnyDomain:
        """A domain's embedded dataset by its tiny recipe, on the device."""
        return open_domain(tiny(name), 0, None, self.device)


@dataclass(frozen=True)
class DeviceFinding:
    """The findings of a check."""

    said: str
    figures: dict[str, float] = field(default_factory=dict)
    throughput: dict[str, float] = field(default_factory=dict)


Check = Callable[[DeviceWork], DeviceFinding]


def run_checks(work: DeviceWork, report: DeviceReport) -> Iterator[str]:
    """Do every check, note it in the report, and yield a line for each."""
    start = time.monotonic()
    for name, check in DEVICE_CHECKS.items():
        begun = time.monotonic()
        if begun - start > 60 * MINUTES:
            ok, found = False, DeviceFinding(f"not begun: {MINUTES} minutes are over")
        else:
            ok, found = check_outcome(check, work)
        seconds = time.monotonic() - begun
        entry = {"ok": ok, "seconds": round(seconds, 2), "said": found.said, **found.figures}
        report.checks[name] = entry
        report.throughput.update(found.throughput)
        yield f"{'ok' if ok else 'FAIL':4}  {name:10} {found.said} ({seconds:.1f} s)"


def check_outcome(check: Check, work: DeviceWork) -> tuple[bool, DeviceFinding]:
    """Return whether a check passed, with its findings or its error."""
    try:
        with redirect_stderr(StringIO()):  # what domains say of their data, time and again
            return True, check(work)
    except (Exception, SystemExit) as error:
        if is_termination(error):
            raise
        return False, DeviceFinding(f"{type(error).__name__}: {error}".split("\n")[0])


def new_report(device: torch.device) -> DeviceReport:
    """Make the report of a device before any check."""
    about = environment(device)
    names = ("device_memory_gib", "device_count", "deterministic", "tf32")
    told = {key: about[key] for key in names if key in about}
    kind = {"name": about["device"], "type": device.type, **told, "cpus": cpu_count()}
    return DeviceReport(kind, {"python": about["python"], **about["versions"]}, busy=load_per_cpu())


def load_per_cpu() -> float:
    """Processes that want the CPUs, for each of them."""
    return round(os.getloadavg()[0] / cpu_count(), 2)


def losses_of_the_cpu(work: DeviceWork) -> DeviceFinding:
    """Every loss with every pairing: values and gradients are the CPU's."""
    worst = dict.fromkeys(TOLERANCES, 0.0)
    for name in work.losses:
        for title in (*LAW_PAIRINGS, "same_class"):
            for dtype, tolerance in TOLERANCES.items():
                gap = deviation_from_cpu(name, title, dtype, work.device)
                assert gap <= tolerance, f"{name}, {title}, {dtype}: {gap:.1e} from the CPU's"
                worst[dtype] = max(worst[dtype], gap)
    told = ", ".join(f"{worst[d]:.1e} in {str(d)[6:]} (of {t:g})" for d, t in TOLERANCES.items())
    figures = {f"farthest_{str(dtype)[6:]}": gap for dtype, gap in worst.items()}
    return DeviceFinding(f"{len(work.losses)} losses, farthest from the CPU's: {told}", figures)


def deviation_from_cpu(name: str, title: str, dtype: torch.dtype, device: torch.device) -> float:
    """Return how far a loss's value and gradients on the device are from those on the CPU."""
    results = []
    for place in (torch.device("cpu"), device):
        views = [view.to(place).requires_grad_() for view in random_views(0, 37, 16, dtype)]
        loss = prepared_loss(name, {}).to(dtype).to(place)
        results.append(value_and_gradient(loss, pair_views(title, views), views))
    gaps = []
    for expected, found in zip(*results, strict=True):
        scale = max(1.0, expected.abs().max().item())
        gaps.append((found.cpu() - expected).abs().max().item() / scale)
    return math.inf if any(map(math.isnan, gaps)) else max(gaps)


def pair_views(title: str, views: Sequence[Tensor]) -> Contrast:
    """Pair the views by the named pairing, with labels on the views' device."""
    if title != "same_class":
        return LAW_PAIRINGS[title](views)
    labels = torch.arange(len(views[0]), device=views[0].device) % 10
    return numbered_samples(same_class(views[0], views[1], labels))


def steps_without_waiting(work: DeviceWork) -> DeviceFinding:
    """Check that the host never waits for the device in a step of each domain."""
    for name in work.installed:
        domain, loss = work.open(name), get_loss(CELL_LOSS).to(work.device)
        model, batches = domain.model(), list(domain.batches(0))
        model.train()
        training = Run(model, loss, domain.recipe, 10**9, None, None)
        for number, batch in enumerate((batches[0], batches[-1])):
            # the first step allocates, and may wait for that
            with check_no_wait(work.device) if number else nullcontext():
                contrasts = domain.contrasts(model, batch)
                training.update(torch.stack([loss(contrast) for contrast in contrasts]).sum())
    unseen = "" if work.device.type == "cuda" else ": only CUDA shows waits"
    return DeviceFinding(f"{checked_domains(work)}{unseen}")


@contextmanager
def check_no_wait(device: torch.device) -> Iterator[None]:
    """Raise where the host waits for the device, which only CUDA tells."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def cells_twice(work: DeviceWork) -> DeviceFinding:
    """A small cell of each domain, trained and scored twice, has the same numbers to the bit."""
    said = []
    for name in work.installed:
        first, second = (train_small_cell(name, work.device) for _ in range(2))
        assert first == second, (
            f"{name}: two runs have other numbers: {first_difference(first, second)}"
        )
        said.append(f"{name} {first[0]:.2f}")
    return DeviceFinding(f"{', '.join(said)}; each twice, the same bits")


def train_small_cell(
    name: str, device: torch.device
) -> tuple[float, dict[str, float], list[float]]:
    """The main score of a small cell, all of them, and the mean loss of each epoch."""
    with TemporaryDirectory() as folder:
        record, _ = run_cell(tiny(name), 0, Options(Path(folder), device=str(device)))
    assert record["status"] == "ok", f"{name}: {record['details']['error']}"
    metrics = record["metrics"]
    return metrics[record["main"]], metrics, record["details"]["loss_by_epoch"]


def first_difference(one: Any, other: Any) -> str:
    """Say where two results begin to differ."""
    pairs = zip(one[2], other[2], strict=True)
    epoch = next((k for k, (a, b) in enumerate(pairs, 1) if a != b), None)
    return f"from epoch {epoch} on" if epoch else f"scores {one[0]:.2f} and {other[0]:.2f}"


def resumed(work: DeviceWork) -> DeviceFinding:
    """A training that was interrupted ends in the bits of one that was not."""
    for name in work.installed:
        whole, history = trained_model(work, name)
        stop = max(1, work.open(name).steps() // 2)
        with TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "training.safetensors"
            with suppress(KeyboardInterrupt):
                trained_model(work, name, checkpoint, domain_laws.interrupt(stop))
            again, later = trained_model(work, name, checkpoint)
        other = domain_laws.differing_tensor(whole.state_dict(), again.state_dict())
        assert other is None, f"{name}: {other} differs after an interruption at step {stop}"
        assert later == history, f"{name}: the losses differ after an interruption at step {stop}"
    return DeviceFinding(checked_domains(work))


def trained_model(
    work: DeviceWork, name: str, checkpoint: Path | None = None, look: Look | None = None
) -> tuple[nn.Module, Any]:
    """Train a small model, and return it with the course of its training."""
    domain, loss = work.open(name), get_loss(CELL_LOSS).to(work.device)
    torch.manual_seed(0)
    return train(domain, loss, checkpoint, look=look)


def large_batches(work: DeviceWork) -> DeviceFinding:
    """Time of a loss's step with many embeddings, and its memory where the device tells."""
    rows, said = work.size(64, 8192, 32768), []
    figures: dict[str, float] = {}
    for name in LARGE_LOSSES:
        step = perf_losses.train_step(name, rows, work.device)
        peak = devices.PeakMemory(work.device)
        before = peak.mib or 0.0
        seconds = best_of(step, work.device, repeats=1)
        figures[f"{name}_seconds"] = seconds
        said.append(f"{name} {seconds:.3g} s")
        if work.device.type == "cuda":  # a process keeps what it has freed: bench perf losses
            figures[f"{name}_mib"] = (peak.mib or 0.0) - before
            said[-1] += f" and {figures[f'{name}_mib']:.0f} MiB"
    return DeviceFinding(f"2N = {rows}: {', '.join(said)}", figures)


def speeds(work: DeviceWork) -> DeviceFinding:
    """Operations and bytes a second: products, a copy, a ResNet-18's step."""
    torch.set_num_threads(cpu_count())
    others = max(0.0, round(load_per_cpu() - 1 / cpu_count(), 2))  # this process is one
    found: dict[str, float] = {"bytes_per_second": copy_bandwidth(work)}
    for name, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        found[f"flops_{name}"] = multiplied(work, dtype)
        found[f"step_flops_{name}"], found[f"images_per_second_{name}"] = stepped(work, name)
    told = [
        f"{found[f'flops_{name}'] / 1e12:.3g} TFLOP/s in {name} "
        f"({found[f'step_flops_{name}'] / 1e12:.3g} in a ResNet-18's step)"
        for name in ("float32", "bf16")
    ]
    told.append(f"{found['bytes_per_second'] / 1e9:.3g} GB/s")
    if others > MAX_OTHER_LOAD:
        told.append(f"too low where {others:g} other processes want each CPU")
    return DeviceFinding(", ".join(told), throughput=found)


def copy_bandwidth(work: DeviceWork) -> float:
    """Bytes that a copy reads and writes in a second."""
    x = torch.zeros(work.size(2**10, 2**24, 2**28), device=work.device)
    y = torch.empty_like(x)
    return 2 * x.numel() * x.itemsize / best_of(lambda: y.copy_(x), work.device)


def multiplied(work: DeviceWork, dtype: torch.dtype) -> float:
    """Floating-point operations a second of a product of two matrices."""
    n = work.size(64, 2048, 8192)
    a = torch.ones(n, n, device=work.device, dtype=dtype)
    return 2 * n**3 / best_of(lambda: a @ a, work.device)


def stepped(work: DeviceWork, precision: str) -> tuple[float, float]:
    """Floating-point operations and images a second of SimCLR's step on images of 32 pixels."""
    from contrastbench.domains.image import ImageRecipe
    from contrastbench.domains.image.networks.model import ImageModel
    from contrastbench.losses import both_views

    width = 0.0625 if work.small else 1.0
    recipe = make_recipe("image", {"precision": precision, "width": width, "size": 32})
    model, loss = ImageModel(cast(ImageRecipe, recipe), 1).to(work.device), get_loss("infonce")
    batch = work.size(2, 16, 256)
    views = [torch.rand(batch, 3, 32, 32, device=work.device) for _ in range(2)]

    def step() -> None:
        model.zero_grad()
        loss(both_views(*[model(view) for view in views])).backward()

    with FlopCounterMode(display=False) as counter:
        step()
    seconds = best_of(step, work.device)
    return counter.get_total_flops() / seconds, batch / seconds


def tiny(name: str) -> Experiment:
    """A domain's embedded dataset by its tiny recipe."""
    about = declaration(name)
    return Experiment(name, about.default, LossSpec(CELL_LOSS), about.tiny)


def checked_domains(work: DeviceWork) -> str:
    """Return the domains that were checked, and those whose libraries are missing."""
    missing = [name for name in work.domains if name not in work.installed]
    without = f"; not installed: {', '.join(missing)}" if missing else ""
    return ", ".join(work.installed) + without


DEVICE_CHECKS: dict[str, Check] = {
    "losses": losses_of_the_cpu,
    "steps": steps_without_waiting,
    "cells": cells_twice,
    "resume": resumed,
    "memory": large_batches,
    "throughput": speeds,
}
