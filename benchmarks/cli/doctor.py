"""The command `bench doctor`: what is installed, what is missing, and how to install it."""

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import torch
from packaging.requirements import Requirement

from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.running.devices import driver, installed
from contrastbench.benchmarks.running.provenance import ROOT, provenance
from contrastbench.domains.download import cache_folder
from contrastbench.domains.registry import declarations
from contrastbench.errors import UserError

NOT_INSTALLED = f'it is not installed, so what it needs is not known: pip install -e "{ROOT}"'


def doctor() -> None:
    """Show versions, devices, and how to install what is missing.

    Example: bench doctor
    """
    for line in doctor_lines():
        say(line)


def doctor_lines() -> Iterator[str]:
    """Yield the lines that `bench doctor` prints.

    Versions, devices, folders, and a pip line for each extra that is not complete.
    """
    yield f"Python {platform.python_version()} on {platform.platform()}, {os.cpu_count()} CPUs"
    yield f"contrastbench {provenance().version or 'of an unknown version'}"
    yield from packages() if installed("contrastbench") else [NOT_INSTALLED]
    yield from devices()
    yield f"downloads: {cache_folder()}"
    yield f"CONTRASTBENCH_DATA: {data_folder(os.environ.get('CONTRASTBENCH_DATA', ''))}"
    yield from broken_domains()


def packages() -> Iterator[str]:
    """Yield a line for each package that ours needs, and for each extra."""
    yield from map(package_line, requirements(extra=""))
    for extra in importlib.metadata.metadata("contrastbench").get_all("Provides-Extra") or []:
        missing = [r for r in requirements(extra) if not fits(r, installed(r.name))]
        names = ", ".join(f"{r.name}{r.specifier if installed(r.name) else ''}" for r in missing)
        fix = f'missing {names}: pip install "contrastbench[{extra}]"' if missing else "complete"
        yield f"extra [{extra}]: {fix}"


def data_folder(path: str) -> str:
    if not path:
        return "not set"
    return path if Path(path).is_dir() else f"{path}, MISSING: name a folder that holds the data"


def broken_domains() -> Iterator[str]:
    for name, about in declarations().items():
        if isinstance(about, UserError):
            yield f"domain {name} is BROKEN: {about}"


def requirements(extra: str) -> list[Requirement]:
    """Return the requirements of the package, or of one of its extras.

    Extras inside extras are left to their own line.
    """
    declared = map(Requirement, importlib.metadata.requires("contrastbench") or [])
    chosen = [r for r in declared if r.name != "contrastbench" and bool(r.marker) == bool(extra)]
    return [r for r in chosen if r.marker is None or r.marker.evaluate({"extra": extra})]


def package_line(requirement: Requirement) -> str:
    version = installed(requirement.name)
    state = version or "MISSING"
    if version and not fits(requirement, version):
        state += f", but {requirement.specifier} is needed: pip install -U {requirement.name}"
    return f"  {requirement.name} {state}"


def fits(requirement: Requirement, version: str | None) -> bool:
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def devices() -> Iterator[str]:
    """Yield a line on each CUDA device and its libraries, or why there is none."""
    built = torch.version.cuda or torch.version.hip
    fix = ", but there is a driver: pip install torch as pytorch.org/get-started/locally says"
    fix *= not built and bool(driver())
    yield f"torch is built for {f'CUDA {built}' if built else 'CPUs alone'}{fix}"
    if not torch.cuda.is_available():
        missing = ": no driver of NVIDIA's answers (nvidia-smi)" if built and not driver() else ""
        yield f"no CUDA device{missing}; everything runs on the CPU"
        return
    yield f"driver {driver() or 'unknown'}, cuDNN {torch.backends.cudnn.version() or 'MISSING'}"
    for i in range(torch.cuda.device_count()):
        free, total = (size / 2**30 for size in torch.cuda.mem_get_info(i))
        name, bf16 = torch.cuda.get_device_name(i), torch.cuda.is_bf16_supported(False)
        memory = f"{total:.0f} GiB, {free:.0f} free"
        yield f"cuda:{i}: {name}, {memory}, bf16 {'yes' if bf16 else 'no'}"
    yield "TensorFloat-32 off unless --tf32, deterministic unless --no-deterministic"
    yield "not tried yet? bench check-device cuda"
