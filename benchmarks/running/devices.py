"""Choose and set up the device that computes, and say what a number was computed with."""

import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.errors import UserError, printable

CPUINFO = Path("/proc/cpuinfo")
REPEATABLE = {  # read when CUDA's and the compiler's libraries start
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "TORCHINDUCTOR_DETERMINISTIC": "1",
}
PACKAGES = (  # that compute, read data, or fit what scores
    *("torch", "numpy", "scikit-learn", "scipy", "joblib"),
    *("torch-geometric", "rdkit", "torchvision", "pillow", "transformers", "tokenizers"),
    *("datasets", "pandas", "pyarrow"),
)
DECIDING = (  # starts of variables that change rounding
    *("MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_"),
    *("NPY_", "NVIDIA_TF32_"),
)

Circumstances = dict[str, Any]

of_ranks: list[str] = []  # the device of each rank, where a training has several


def open_device(name: str, deterministic: bool = True, tf32: bool = False) -> torch.device:
    """Return the device with that name; an accelerator is set up for the whole process.

    A CPU repeats its numbers as it is, and is left alone.

    Args:
        name: cpu, cuda, cuda:1, ... or auto: CUDA where there is one.
        deterministic: kernels that repeat their numbers bit for bit; an operation that has none
            raises RuntimeError. Otherwise the fastest kernels, found by trying.
        tf32: products of float32 are rounded to 10 bits of mantissa (TensorFloat-32).
    """
    if deterministic and name != "cpu":
        for variable, value in REPEATABLE.items():
            os.environ.setdefault(variable, value)
    device = torch.device(choose_device(name))
    if device.type != "cpu":
        set_up(deterministic, tf32)
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)  # what names no device would start another one's context
    return device


def choose_device(name: str) -> str:
    """Return the device's name, with `auto` resolved."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        # a device that is named may compute nothing, such as meta
        torch.empty(1, device=name).sum().item()
    except (RuntimeError, AssertionError, ImportError):
        raise UserError(f"device {name!r} is not available on this machine: use cpu") from None
    return name


def set_up(deterministic: bool, tf32: bool) -> None:
    """Set torch's switches for accelerators."""
    torch.set_deterministic_debug_mode("error" if deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32


def describe(device: torch.device) -> dict[str, Any]:
    """Return the device's name, the CPU's model, and of an accelerator how torch is set up.

    Of a CUDA device also its memory, since a part of a card has the name of the whole.
    """
    about: dict[str, Any] = {"device": device_name(device), "cpu": cpu_model()}
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
        about["device_memory_gib"] = round(memory / 2**30, 1)
    if device.type != "cpu":
        about["deterministic"] = torch.get_deterministic_debug_mode() == 2
        about["tf32"] = torch.backends.cudnn.allow_tf32
    return about


def device_name(device: torch.device) -> str:
    """Return the device's name for people; a CPU's includes its instructions, which round apart."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":
        return f"{platform.machine()} CPU, {torch.backends.cpu.get_cpu_capability()}"
    return device.type


@cache
def cpu_model() -> str | None:
    """Return the name of the CPU's model; None where the system tells none.

    Clouds hide the name behind a general one, so that family and model follow it on x86.
    """
    try:
        text = CPUINFO.read_text("utf-8", "replace")
    except OSError:
        return printable(platform.processor()) or None
    lines = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    about = {name.strip(): value.strip() for name, _, value in lines}
    name = about.get("model name") or about.get("CPU part") or platform.processor()
    numbers = [f"{key} {about[key]}" for key in ("cpu family", "model", "stepping") if key in about]
    return printable(", ".join([name, *numbers] if name else numbers)) or None


def libraries(device: torch.device) -> dict[str, str]:
    """Return the versions of the toolkit (or ROCm), cuDNN and driver of a CUDA device."""
    if device.type != "cuda":
        return {}
    toolkit = {"cuda": torch.version.cuda, "rocm": torch.version.hip}
    versions = {**toolkit, "cudnn": torch.backends.cudnn.version(), "driver": driver()}
    return {name: str(version) for name, version in versions.items() if version}


@cache
def driver() -> str | None:
    """Return the version of NVIDIA's driver, or None where its tool gives none."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return said.splitlines()[0].strip() if said.strip() else None


class PeakMemory:
    """Measure the peak of the memory in use since the object was made.

    Of the device for CUDA, of the process for the CPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            self.forgotten = False
            with suppress(OSError):  # Linux alone starts the process's peak anew
                Path("/proc/self/clear_refs").write_text("5", "utf-8")
                self.forgotten = True

    @property
    def mib(self) -> float | None:
        """Return the peak in MiB; None where the system still remembers an earlier cell's."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 2**20
        if not self.forgotten:
            return None
        status = Path("/proc/self/status").read_text("utf-8")
        kib = next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]
        return int(kib) / 2**10


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def environment(device: torch.device, compiled: Sequence[str] = ()) -> dict[str, Any]:
    """Return the record's description of the machine, the code, and what of it was compiled.

    Of CUDA also how many devices this process sees, and which of them this is.
    """
    about: Circumstances = {"python": platform.python_version(), "platform": platform.platform()}
    about |= circumstances(device, compiled)
    if device.type == "cuda":
        about |= {"device_count": torch.cuda.device_count(), "device_index": device.index or 0}
    return about


def circumstances(device: torch.device, compiled: Sequence[str] = ()) -> Circumstances:
    """Commit, versions, variables, device, CPU and threads: all that equal numbers need.

    Of an accelerator also its memory and whether it was asked to be deterministic, without which
    nothing is promised.
    """
    code = provenance()
    versions = {"contrastbench": code.version, **{name: installed(name) for name in PACKAGES}}
    versions = {name: release for name, release in versions.items() if release}
    names = [name for name in os.environ if name.startswith(DECIDING) and "THREADS" not in name]
    variables = {name: printable(os.environ[name]) for name in sorted(names)}  # no thread counts
    return {
        "commit": code.commit,
        **({"variables": variables} if variables else {}),
        "versions": {**versions, **libraries(device)},
        **describe(device),
        **({"devices": of_ranks} if of_ranks else {}),
        "threads": torch.get_num_threads(),
        **({"compiled": [*compiled]} if compiled else {}),
    }


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
