"""Settings of the process, most of them torch's, which a user's code has to leave as they are."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    """End the group of processes that a user's code has made."""
    if dist.is_initialized() > met:
        dist.destroy_process_group()


# of the process, by the call that changes it: how to read it, and how to put it back
SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
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
    """Put settings of torch and the working directory back afterwards.

    Args:
        who: the user's code that runs within.

    Raises:
        UserError: it has changed one.
    """
    before = {call: read() for call, (read, _) in SETTINGS.items()}
    try:
        yield
    finally:
        changed = [call for call, (read, _) in SETTINGS.items() if read() != before[call]]
        for call in changed:
            SETTINGS[call][1](before[call])
    if changed:
        what = "which changes the other trainings of the process: remove the call"
        raise UserError(f"{who} calls {changed[0]}, {what}")
