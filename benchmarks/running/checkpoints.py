"""Checkpoints of a training that may be interrupted.

One safetensors file, written whole or not at all.
"""

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from contrastbench.benchmarks.records import files
from contrastbench.errors import tell

Tensors = dict[str, Tensor]


def write_checkpoint(path: Path, tensors: Tensors, state: dict[str, Any]) -> None:
    """Replace the checkpoint by tensors and plain values, with a sha256 over all of it.

    Raises:
        OSError: it cannot be written; the old one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(state)
    about = {"state": text, "checksum": tensor_digest(whole, path.stem + text)}
    with files.on_its_way(path.parent) as temporary:
        try:
            save_file(whole, temporary, about)
        except SafetensorError as error:
            raise OSError(f"cannot write {path} ({error})") from None
        files.sync(temporary)
        temporary.replace(path)
    files.sync_folder(path.parent)


def read_checkpoint(path: Path) -> tuple[Tensors, dict[str, Any]] | None:
    """Return the checkpoint's tensors and state; None if there is none, or it cannot be used."""
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
            about = file.metadata() or {}
    except (SafetensorError, OSError):
        tensors, about = {}, {}
    state = about.get("state", "")
    if tensor_digest(tensors, path.stem + state) != about.get("checksum"):
        tell_unusable(path)
        return None
    return tensors, json.loads(state)


def tell_unusable(path: Path) -> None:
    """Say that the training does not go on from a file."""
    tell(f"{path} is damaged, or of another training or release: the training starts anew")


def joined(**parts: Tensors) -> Tensors:
    """Return the tensors of all parts, each with the name of its part before its own.

    >>> joined(model={"weight": torch.ones(1)}, loss={})
    {'model.weight': tensor([1.])}
    """
    return {f"{part}.{name}": x for part, some in parts.items() for name, x in some.items()}


def parted(tensors: Tensors) -> defaultdict[str, Tensors]:
    """Return the tensors by part; a part that has none is empty."""
    parts = defaultdict[str, Tensors](dict)
    for name, tensor in tensors.items():
        part, _, own = name.partition(".")
        parts[part][own] = tensor
    return parts


def forms(tensors: Tensors) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def tensor_digest(tensors: Tensors, text: str) -> str:
    """Return the sha256 of the text and of each tensor's name, type, shape and bytes."""
    hasher = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        hasher.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        hasher.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()
