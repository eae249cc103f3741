"""Settings of the process, most of them torch's, which a user's code has to leave as they are."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from contrastbench.errors import UserError


def set_default_device(device: torch.device) -> None:
    """Set torch's default device; torch asks at every call where one is set, so the CPU is none."""
    torch.set_default_device(None if device.type == "cpu" else device)


def working_directory() -> str:
    """Return the working directory, which may have been removed."""
    with suppress(FileNotFoundError):
        return str(Path.cwd())
    return "."


def leave_groups(met: bool) -> None:
    if dist.is_initialized() > met:
        dist.destroy_process_group()


def autocast() -> list[tuple[str, bool, torch.dtype]]:
    return [(k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in AUTOCAST]


def set_autocast(kinds: Iterable[tuple[str, bool, torch.dtype]]) -> None:
    for kind, enabled, dtype in kinds:
        torch.set_autocast_enabled(kind, enabled)
        torch.set_autocast_dtype(kind, dtype)


AUTOCAST = ("cpu", "cuda")
VARIABLES = (  # starts of those that change how libraries compute, and on which device
    *("MKL_", "OPENBLAS_", "OMP_", "DNNL_", "ONEDNN_", "NPY_", "NVIDIA_TF32_", "ATEN_"),
    *("CUDA_VISIBLE_DEVICES", "CUBLAS_", "TORCH_", "PYTORCH_"),
)
# of the process, by the call that changes it: how to read it, and how to put it back; a later one
# may be readable only once an earlier one is back
SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch.backends.fp32_precision": (
        partial(getattr, torch.backends, "fp32_precision"),
        partial(setattr, torch.backends, "fp32_precision"),
    ),
    "torch.autocast": (autocast, set_autocast),
    "os.chdir": (working_directory, os.chdir),
    "torch.distributed.init_process_group": (dist.is_initialized, leave_groups),
    "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch.set_default_device": (torch.get_default_device, set_default_device),
    "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.use_deterministic_algorithms": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    "torch.set_float32_matmul_precision": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "torch.set_anomaly_enabled": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
}


@contextmanager
def keep_settings(who: str) -> Iterator[None]:
    """Put settings of torch and the working directory back, and raise if one has changed."""
    before, changed = {call: state(call) for call in SETTINGS}, list[str]()
    try:
        yield
    finally:
        for call, value in before.items():
            if state(call) != value:
                changed.append(call)
                with suppress(RuntimeError):
                    SETTINGS[call][1](value)
    if changed:
        what = "which changes the other trainings of the process: remove the call"
        raise UserError(f"{who} calls {changed[0]}, {what}")


def state(call: str) -> Any:
    """Return a setting, or why torch does not say it, as where two ways to set it were mixed."""
    try:
        return SETTINGS[call][0]()
    except RuntimeError as error:
        return str(error)


@contextmanager
def keep_variables(who: str) -> Iterator[None]:
    """Put variables back by which other processes would compute, and raise if one has changed."""
    before = variables()
    try:
        yield
    finally:
        after = variables()
        for name in after.keys() - before:
            del os.environ[name]
        os.environ.update(before)
    if changed := sorted(name for name, _ in before.items() ^ after.items()):
        what = "by which other trainings compute: set it before the command"
        raise UserError(f"{who} changes the variable {changed[0]}, {what}")


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
