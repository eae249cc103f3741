"""Checkpoints of a training that may be interrupted.

One safetensors file, written whole or not at all.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from contrastbench.benchmarks.records.store import sync_folder

Tensors = dict[str, Tensor]


def write(path: Path, tensors: Tensors, state: dict[str, Any]) -> None:
    """Replace the checkpoint by tensors, a state of plain values, and the sha256 over both."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(state)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        save_file(whole, temporary, {"state": text, "sha256": digest(whole, text)})
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def read(path: Path) -> tuple[Tensors, dict[str, Any]] | None:
    """The checkpoint's tensors and state; None if there is none or it is damaged, which is said."""
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
            metadata = file.metadata() or {}
    except (SafetensorError, OSError):
        tensors, metadata = {}, {}
    if digest(tensors, metadata.get("state", "")) != metadata.get("sha256"):
        print(f"{path} is damaged: the training starts anew", file=sys.stderr)
        return None
    return tensors, json.loads(metadata["state"])


def digest(tensors: Tensors, state: str) -> str:
    """Sha256 over names, bytes and state."""
    hasher = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        hasher.update(name.encode() + tensors[name].reshape(-1).numpy().tobytes())
    return hasher.hexdigest()
