"""What this machine has, what is missing, and the line that adds it."""

import importlib.metadata
import os
import platform
from collections.abc import Iterator

import torch
from packaging.requirements import Requirement

from contrastbench.benchmarks.running.environment import installed
from contrastbench.domains.download import cache_folder


def report() -> Iterator[str]:
    """Lines for people.

    Versions, devices, folders, and a pip line for each extra that is not complete.
    """
    yield f"Python {platform.python_version()} on {platform.platform()}, {os.cpu_count()} CPUs"
    yield f"contrastbench {importlib.metadata.version('contrastbench')}"
    yield from map(describe, requirements(extra=""))
    for extra in importlib.metadata.metadata("contrastbench").get_all("Provides-Extra") or []:
        missing = [r for r in requirements(extra) if installed(r.name) is None]
        names = ", ".join(r.name for r in missing)
        fix = f'missing {names}: pip install "contrastbench[{extra}]"' if missing else "complete"
        yield f"extra [{extra}]: {fix}"
    yield from devices()
    yield f"downloads: {cache_folder()}"
    yield f"CONTRASTBENCH_DATA: {os.environ.get('CONTRASTBENCH_DATA', 'not set')}"


def requirements(extra: str) -> list[Requirement]:
    """What the package needs, or what one of its extras adds.

    Extras inside extras are left to their own line.
    """
    found = map(Requirement, importlib.metadata.requires("contrastbench") or [])
    chosen = [r for r in found if r.name != "contrastbench" and bool(r.marker) == bool(extra)]
    return [r for r in chosen if r.marker is None or r.marker.evaluate({"extra": extra})]


def describe(requirement: Requirement) -> str:
    """One line on a package."""
    version = installed(requirement.name)
    state = version or "MISSING"
    if version and not requirement.specifier.contains(version, prereleases=True):
        state += f", but {requirement.specifier} is needed: pip install -U {requirement.name}"
    return f"  {requirement.name} {state}"


def devices() -> Iterator[str]:
    """One line for each CUDA device, or one that says there is none."""
    for i in range(torch.cuda.device_count()):
        memory = torch.cuda.get_device_properties(i).total_memory / 2**30
        yield f"cuda:{i}: {torch.cuda.get_device_name(i)}, {memory:.0f} GiB"
    if not torch.cuda.is_available():
        yield "no CUDA device: everything runs on the CPU"
