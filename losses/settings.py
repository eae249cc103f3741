"""Settings of torch for the whole process, which a user's code has to leave as they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from contrastbench.errors import UserError


def set_default_device(device: torch.device) -> None:
    """Set torch's default device; torch asks at every call where one is set, so the CPU is none."""
    torch.set_default_device(None if device.type == "cpu" else device)


# by the call that changes it: how to read it, and how to put it back
SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "set_default_device": (torch.get_default_device, set_default_device),
    "set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
    "use_deterministic_algorithms": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    "set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    "set_float32_matmul_precision": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "set_anomaly_enabled": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
}


@contextmanager
def keep_settings(who: str) -> Iterator[None]:
    """Put torch's settings back afterwards.

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
        raise UserError(
            f"{who} calls torch.{changed[0]}, which changes the other trainings of the process: "
            "remove the call"
        )
