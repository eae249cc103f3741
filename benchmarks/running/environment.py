"""What a number was computed with."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from contrastbench.benchmarks.running import devices

PACKAGES = ("contrastbench", "torch", "numpy", "scikit-learn", "transformers", "tokenizers")

Circumstances = dict[str, Any]

of_ranks: list[str] = []  # the device of each rank, where a training has several


def environment(device: torch.device) -> dict[str, Any]:
    """What the record says of the machine and the code."""
    about = {"python": platform.python_version(), "platform": platform.platform()}
    return {**about, **circumstances(device), **devices.count(device)}


def circumstances(device: torch.device) -> Circumstances:
    """Commit, versions, device and threads: where they are the same, equal numbers are promised.

    Of an accelerator also its memory and whether it was asked to be deterministic, without which
    nothing is promised.
    """
    versions = {name: found for name in PACKAGES if (found := installed(name))}
    return {
        "commit": commit(),
        "versions": {**versions, **devices.libraries(device)},
        "device": devices.device_name(device),
        **({"devices": of_ranks} if of_ranks else {}),
        "threads": torch.get_num_threads(),
        **devices.memory_gib(device),
        **devices.switches(device),
    }


def installed(name: str) -> str | None:
    """The installed version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """The checkout's commit, "+changes" behind it if files differ.

    None for an installed package.
    """
    root = Path(__file__).parents[2]
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
