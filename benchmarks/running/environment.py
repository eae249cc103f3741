"""What a number was computed with."""

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from contrastbench.losses.errors import UserError

PACKAGES = ("contrastbench", "torch", "numpy", "scikit-learn", "transformers", "tokenizers")


def environment(device: torch.device) -> dict[str, Any]:
    """Commit, versions, device and threads, for the record."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
        "platform": platform.platform(),
        "device": device_name(device),
        "threads": torch.get_num_threads(),
    }


def installed(name: str) -> str | None:
    """The installed version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """The checkout's commit, "+changes" behind it if files differ; None for an installed package."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        return None

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        ).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!results").strip()
        return git("rev-parse", "HEAD").strip() + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def choose_device(name: str) -> str:
    """The device's name, `auto` resolved.

    Raises:
        UserError: no such device here.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(
            1, device=name
        ).sum().item()  # a device that is named may compute nothing, such as meta
    except (RuntimeError, AssertionError):
        raise UserError(f"device {name!r} is not to be had here: try cpu") from None
    return name


def device_name(device: torch.device) -> str:
    """The device as a person calls it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU"


def peak_memory_mib(device: torch.device) -> float | None:
    """Most memory in use so far: of the device for CUDA, of the process for the CPU; None where it is not told."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
