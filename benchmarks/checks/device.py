"""Check for `bench check-device` that a device agrees with a CPU.

What a user runs once on a new machine. Each check returns what it found; what it raises is a
failure, and the next one follows.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from contrastbench.benchmarks.checks import domain as domain_checks
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.running.training import AnyDomain, Run
from contrastbench.domains.registry import DOMAINS, declaration, domain_class
from contrastbench.errors import UserError
from contrastbench.losses import LOSSES, get_loss, same_class
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import CheckResult
from contrastbench.losses.laws.assertions import Law, value_and_gradient
from contrastbench.losses.laws.battery import outcome, plain_cause, prepared_loss
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, numbered_samples, random_views
from contrastbench.losses.spec import LossSpec

# how far value and gradients may be from the CPU's, as a share of the largest entry if that is
# above 1: sums in another order
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4}
CELL_LOSS = "adnce"
SmallCell = tuple[float, dict[str, float], list[float]]  # main score, all, loss by epoch


@dataclass(frozen=True)
class DeviceWork:
    """The device that is checked, and on what."""

    device: torch.device
    domains: tuple[str, ...] = tuple(DOMAINS)
    losses: tuple[str, ...] = tuple(LOSSES)

    @property
    def installed(self) -> tuple[str, ...]:
        names = []
        for name in self.domains:
            with suppress(UserError):
                domain_class(name)
                names.append(name)
        return tuple(names)

    def open(self, name: str) -> AnyDomain:
        """A domain's embedded dataset by its tiny recipe, on the device."""
        return open_domain(tiny(name), 0, None, self.device)


def run_checks(work: DeviceWork) -> Iterator[CheckResult]:
    for law in DEVICE_CHECKS:
        with redirect_stderr(StringIO()):  # what domains say of their data, time and again
            found = outcome(law, partial(law.check, work), plain_cause)
        yield found


def check_losses(work: DeviceWork) -> str:
    """Every loss with every pairing: values and gradients are the CPU's."""
    worst = dict.fromkeys(TOLERANCES, 0.0)
    for name in work.losses:
        for title in (*LAW_PAIRINGS, "same_class"):
            for dtype, tolerance in TOLERANCES.items():
                gap = deviation_from_cpu(name, title, dtype, work.device)
                assert gap <= tolerance, f"{name}, {title}, {dtype}: {gap:.1e} from the CPU's"
                worst[dtype] = max(worst[dtype], gap)
    told = ", ".join(f"{worst[d]:.1e} in {str(d)[6:]} (of {t:g})" for d, t in TOLERANCES.items())
    return f"{len(work.losses)} losses, farthest from the CPU's: {told}"


def deviation_from_cpu(name: str, title: str, dtype: torch.dtype, device: torch.device) -> float:
    """Return how far a loss's value and gradients on the device are from those on the CPU."""
    results = []
    for place in (torch.device("cpu"), device):
        views = [view.to(place).requires_grad_() for view in random_views(0, 37, 16, dtype)]
        loss = prepared_loss(name, {}).to(dtype).to(place)
        results.append(value_and_gradient(loss, pair_views(title, views), views))
    gaps = []
    for expected, there in zip(*results, strict=True):
        scale = max(1.0, expected.abs().max().item())
        gaps.append((there.cpu() - expected).abs().max().item() / scale)
    return math.inf if any(map(math.isnan, gaps)) else max(gaps)


def pair_views(title: str, views: Sequence[Tensor]) -> Contrast:
    """Pair the views by the named pairing, with labels on the views' device."""
    if title != "same_class":
        return LAW_PAIRINGS[title](views)
    labels = torch.arange(len(views[0]), device=views[0].device) % 10
    return numbered_samples(same_class(views[0], views[1], labels))


def check_steps(work: DeviceWork) -> str:
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
    return f"{checked_domains(work)}{unseen}"


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


def check_cells(work: DeviceWork) -> str:
    """A small cell of each domain, trained and scored twice, has the same numbers to the bit."""
    said = []
    for name in work.installed:
        first, second = (train_small_cell(name, work.device) for _ in range(2))
        assert first == second, f"{name}: two runs have other numbers"
        said.append(f"{name} {first[0]:.2f}")
    return f"{', '.join(said)}; each twice, the same bits"


def train_small_cell(name: str, device: torch.device) -> SmallCell:
    """The main score of a small cell, all of them, and the mean loss of each epoch."""
    with TemporaryDirectory() as folder:
        record, _ = run_cell(tiny(name), 0, Options(Path(folder), device=str(device)))
    assert record["status"] == "ok", f"{name}: {record['details']['error']}"
    metrics = record["metrics"]
    return metrics[record["main"]], metrics, record["details"]["loss_by_epoch"]


def check_resume(work: DeviceWork) -> str:
    """A training that was interrupted ends in the bits of one that was not."""
    for name in work.installed:
        domain_checks.check_resume(domain_checks.Subject(tiny(name), work.device))
    return checked_domains(work)


def tiny(name: str) -> Experiment:
    """A domain's embedded dataset by its tiny recipe."""
    about = declaration(name)
    return Experiment(name, about.default, LossSpec(CELL_LOSS), about.tiny)


def checked_domains(work: DeviceWork) -> str:
    """Return the domains that were checked, and those whose libraries are missing."""
    missing = [name for name in work.domains if name not in work.installed]
    without = f"; not installed: {', '.join(missing)}" if missing else ""
    return ", ".join(work.installed) + without


DEVICE_CHECKS = [Law(check_losses), Law(check_steps), Law(check_cells), Law(check_resume)]
