"""Decoded images of declared sets, kept in the cache, so that the next run decodes nothing."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from contrastbench.domains import download, own
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import Images, ImageSet, content_of

VERSION = 1  # of what decoding gives: who changes a pixel of it raises this
PARTS = ("train", "test", "unlabelled")
FIELDS = ("classes", "validation", "drawn", "mean", "std", "notes")
LoadedImages = tuple[ImageSet, str]  # and the sha256 of its content


def kept(
    about: ImageDataset,
    size: int,
    data_root: Path | None,
    device: torch.device,
    read: Callable[[], LoadedImages],
) -> LoadedImages:
    """A set whose content is declared, from the cache if its files are unchanged; else it is read.

    Args:
        about: the set; one without a declared content is read.
        size: of the views, by which images are stored.
        data_root: a folder that may hold its files.
        device: where pixels and labels go.
        read: reads and decodes it.
    """
    source = download.local_file(about, data_root) if about.content else None
    if source is None:
        return read()
    words = (VERSION, about.name, about.content, size, own.fingerprint(source))
    key = hashlib.sha256(repr(words).encode()).hexdigest()
    path = download.cache_folder() / "decoded" / key
    with suppress(OSError, SafetensorError, ValueError, KeyError):  # absent or damaged
        return load(path, key, device), about.content
    images, digest = read()
    with suppress(OSError):  # a full disk costs time alone
        save(path, key, images)
    return images, digest


def save(path: Path, key: str, images: ImageSet) -> None:
    """Write a set that is in memory, with the sha256 of all that is written."""
    parts = {name: part for name in PARTS if (part := getattr(images, name)) is not None}
    tensors = {
        name: (part.pixels.cpu().contiguous(), part.labels.cpu())
        for name, part in parts.items()
        if isinstance(part, Images)
    }
    if len(tensors) < len(parts):
        return
    words = json.dumps({field: getattr(images, field) for field in FIELDS})
    flat = {f"{name}.{k}": x for name, pair in tensors.items() for k, x in enumerate(pair)}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_file(flat, temporary, {"words": words, "sha256": checksum(key, words, tensors)})
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, key: str, device: torch.device) -> ImageSet:
    """Return what `save` wrote.

    Raises:
        ValueError: it is not whole, or has another key.
        OSError, SafetensorError, KeyError: there is no such file, or it is damaged.
    """
    with safe_open(path, "pt") as file:
        metadata, there = file.metadata(), set(file.keys())
        tensors = {
            name: (file.get_tensor(f"{name}.0"), file.get_tensor(f"{name}.1"))
            for name in PARTS
            if f"{name}.0" in there
        }
    if metadata["sha256"] != checksum(key, metadata["words"], tensors):
        raise ValueError(f"{path} is not what was written")
    words: dict[str, Any] = json.loads(metadata["words"])
    words |= {field: tuple(words[field]) for field in ("classes", "mean", "std")}
    parts = {name: Images(x.to(device), y.to(device)) for name, (x, y) in tensors.items()}
    return ImageSet(parts["train"], parts["test"], parts.get("unlabelled"), **words)


def checksum(key: str, words: str, parts: dict[str, tuple[Tensor, Tensor]]) -> str:
    """Return the sha256 of a set's key, of its words, pixels and labels."""
    return hashlib.sha256(repr((key, words, content_of(parts))).encode()).hexdigest()
