"""What a number was computed with."""

import json
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import torch

from contrastbench.benchmarks.running import devices

PACKAGES = (  # that compute, read data, or fit what scores
    *("contrastbench", "torch", "numpy", "scikit-learn", "scipy", "joblib"),
    *("torch-geometric", "torchvision", "pillow", "transformers", "tokenizers", "datasets"),
    *("pandas", "pyarrow"),
)

Circumstances = dict[str, Any]

of_ranks: list[str] = []  # the device of each rank, where a training has several


def environment(device: torch.device) -> dict[str, Any]:
    """Return the record's description of the machine and the code."""
    about = {"python": platform.python_version(), "platform": platform.platform()}
    return {**about, **circumstances(device), **devices.count(device)}


def circumstances(device: torch.device) -> Circumstances:
    """Return commit, versions, device and threads; where they agree, equal numbers are promised.

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
    """Return the installed version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def commit() -> str | None:
    """The commit of this code, "+changes" behind it if files differ from it.

    Asked for once, before anything is trained: a checkout may move on while its code runs.

    That of the checkout it runs in; of an installed package the one that pip took it from (PEP
    610), or its version names in short. None: neither says it.
    """
    root = Path(__file__).parents[2]
    return of_checkout(root) if (root / ".git").exists() else of_installation()


def of_checkout(root: Path) -> str | None:
    """The commit of a folder that git keeps."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        ).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!results").strip()
        return git("rev-parse", "HEAD").strip() + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def of_installation() -> str | None:
    """The commit of an installed package.

    Its version ends in +gCOMMIT, and in the day it was built where files differed from that.
    """
    try:
        package = distribution("contrastbench")
    except PackageNotFoundError:
        return None
    source = json.loads(package.read_text("direct_url.json") or "{}")
    if found := source.get("vcs_info", {}).get("commit_id"):
        return str(found)
    match = re.search(r"\+g([0-9a-f]+)(\.d[0-9]+)?$", package.version)
    return match[1] + ("+changes" if match[2] else "") if match else None
