"""Places on devices for the workers of a sweep, without torch."""

import subprocess
import sys
from functools import cache
from pathlib import Path

from contrastbench.benchmarks.running.launch import launched
from contrastbench.errors import UserError

# of CUDA and ROCm
DEVICES, DEVICE_PATTERNS = Path("/dev"), ("nvidia[0-9]*", "nvhost*", "kfd", "dxg")
COUNT_COMMAND = [sys.executable, "-P", "-c", "import torch; print(torch.cuda.device_count())"]


def slots(device: str, jobs: int, per_device: bool = False, devices: int = 1) -> list[str]:
    """The device of each worker, or its first one: all that `auto` and `cuda` mean, in turns.

    Args:
        device: as users name it.
        jobs: workers, in all or on each device.
        per_device: the latter.
        devices: number of devices of each worker, which has those that follow the first.

    >>> slots("cuda:1", 2), slots("cpu", 2, per_device=True)
    (['cuda:1', 'cuda:1'], ['cpu', 'cpu'])
    """
    shared = device not in ("auto", "cuda") or launched()  # torchrun gives its ranks their devices
    visible = () if shared else cuda_devices()
    names = visible[: len(visible) - devices + 1 : devices] or (device,)
    return [names[i % len(names)] for i in range(jobs * (len(names) if per_device else 1))]


def check_devices(device: str, devices: int) -> None:
    """Raise UserError if there are fewer devices than each worker is to have."""
    if devices > 1 and device not in ("auto", "cpu", "cuda"):
        both = f"--devices {devices} and --device {device}"
        raise UserError(f"{both}: give cpu or cuda, each has one")
    cards = len(cuda_devices()) if devices > 1 and device != "cpu" else 0
    if cards < devices and (cards or device == "cuda") and devices > 1:
        raise UserError(
            f"--devices {devices} and {cards} CUDA devices: each needs one, "
            "give fewer --devices or --device cpu"
        )


@cache
def cuda_devices() -> tuple[str, ...]:
    """The CUDA devices that workers will see, by torch's names.

    Where the system shows a driver, torch is asked, in a process of its own: it alone knows what
    CUDA_VISIBLE_DEVICES, ROCm and parts of cards leave. No answer counts as none, and the workers
    say what is wrong.
    """
    if sys.platform == "linux" and not any(any(DEVICES.glob(sign)) for sign in DEVICE_PATTERNS):
        return ()
    said = subprocess.run(COUNT_COMMAND, capture_output=True, text=True).stdout.split()
    return tuple(f"cuda:{i}" for i in range(int(said[-1]) if said else 0))
