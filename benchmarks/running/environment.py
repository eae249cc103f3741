"""What a number was computed with."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from contrastbench.benchmarks.running import devices
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.errors import printable

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


def environment(device: torch.device, compiled: Sequence[str] = ()) -> dict[str, Any]:
    """Return the record's description of the machine, the code, and what of it was compiled."""
    about = {"python": platform.python_version(), "platform": platform.platform()}
    return {**about, **circumstances(device, compiled), **devices.count(device)}


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
        "versions": {**versions, **devices.libraries(device)},
        **devices.describe(device),
        **({"devices": of_ranks} if of_ranks else {}),
        "threads": torch.get_num_threads(),
        **({"compiled": [*compiled]} if compiled else {}),
    }


def installed(name: str) -> str | None:
    """Return the installed version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
