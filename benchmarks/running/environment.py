"""What a number was computed with."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from contrastbench.losses.errors import UserError

PACKAGES = ("contrastbench", "torch", "numpy", "scikit-learn", "transformers", "tokenizers")


Circumstances = dict[str, Any]


def environment(device: torch.device) -> dict[str, Any]:
    """What the record says of the machine and the code."""
    about = {"python": platform.python_version(), "platform": platform.platform()}
    return {**about, **circumstances(device)}


def circumstances(device: torch.device) -> Circumstances:
    """Commit, versions, device and threads: where they are the same, equal numbers are promised."""
    return {
        "commit": commit(),
        "versions": {name: found for name in PACKAGES if (found := installed(name))},
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
    """The device as a person calls it; a CPU with the instructions in use, which round apart."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {torch.backends.cpu.get_cpu_capability()}"


class PeakMemory:
    """The most memory in use since it was made.

    Of the device for CUDA, of the process for the CPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            self.forgotten = forget_peak()

    @property
    def mib(self) -> float | None:
        """None where the system remembers the peak of an earlier cell."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 2**20
        return process_peak_mib() if self.forgotten else None


def forget_peak() -> bool:
    """Start the process's peak anew; only Linux can. Whether it is done."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def process_peak_mib() -> float:
    """The process's largest resident set since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    kib = next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]
    return int(kib) / 2**10
