"""Device reports: `bench check-device` writes one JSON file for each.

Brings no torch.
"""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import files
from contrastbench.errors import UserError

REPORT_VERSION = 1


@dataclass
class DeviceReport:
    """A report on a device: its description, its checks and its speeds."""

    # name, type, device_memory_gib, device_count, deterministic, tf32, as far as there are such
    device: dict[str, Any]
    versions: dict[str, str]
    # name -> ok, seconds, said (a line for people), and figures of its own
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    # flops_float32, flops_bf16: floating-point operations a second of a large matrix product;
    # step_flops_float32, step_flops_bf16: the same of a ResNet-18's training step;
    # bytes_per_second: read and written by a copy on the device
    throughput: dict[str, float] = field(default_factory=dict)
    busy: float = 0.0  # other processes that wanted the CPUs as it began, for each CPU
    schema: int = REPORT_VERSION

    @property
    def ok(self) -> bool:
        """Return whether all that was checked is as it should be."""
        return all(check["ok"] for check in self.checks.values())

    @property
    def name(self) -> str:
        """Return the device's name in a form that suits a file name.

        >>> DeviceReport({"name": "NVIDIA H100 80GB HBM3"}, {}).name
        'nvidia-h100-80gb-hbm3'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.device["name"].lower()).strip("-")

    def write(self, path: Path) -> None:
        """Write the report, replacing an older one.

        Raises:
            UserError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace(path, json.dumps(asdict(self), indent=2) + "\n")
        except OSError as error:
            raise UserError(f"cannot write {path} ({error.strerror}): name another file") from None


def device_report_path(results: Path, name: str) -> Path:
    """Return the path of a device's report in a folder of results."""
    return results / "devices" / f"{name}.json"
