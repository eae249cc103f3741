"""Decoded images of declared sets, kept in the cache, so that the next run decodes nothing."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from contrastbench.domains import download, own
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import Images, ImageSet, LoadedImages, Request

VERSION = 2  # of what decoding gives: who changes a pixel of it raises this
PARTS = ("train", "test", "unlabelled")
FIELDS = ("classes", "validation", "drawn", "mean", "std", "notes")


def kept(
    about: ImageDataset, asked: Request, read: Callable[[ImageDataset, Request], LoadedImages]
) -> LoadedImages:
    """A set whose content is declared, from the cache if its files are unchanged; else it is read.

    Args:
        about: the set; one without a declared content is read.
        asked: how it is read.
        read: reads and decodes it.
    """
    source = download.local_file(about, asked.data_root) if about.content else None
    if source is None:
        return read(about, asked)
    words = (VERSION, about.name, about.content, asked.size, own.fingerprint(source))
    key = hashlib.sha256(repr(words).encode()).hexdigest()
    path = download.cache_folder() / "decoded" / key
    with suppress(OSError, SafetensorError, ValueError, KeyError):  # absent or damaged
        return load(path, key, asked), about.content
    images, digest = read(about, asked)
    with suppress(OSError):  # a full disk costs time alone
        save(path, key, images)
    return images, digest


def save(path: Path, key: str, images: ImageSet) -> None:
    """Write a set that is in memory, with the sha256 of all that is written."""
    tensors: dict[str, Tensor] = {}
    for name in PARTS:
        part = getattr(images, name)
        if isinstance(part, Images):
            tensors[f"{name}.pixels"] = part.pixels.cpu().contiguous()
            tensors[f"{name}.labels"] = part.labels.cpu()
        elif part is not None:
            return
    words = json.dumps({field: getattr(images, field) for field in FIELDS})
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file(tensors, temporary, {"words": words, "sha256": checksum(key, words, tensors)})
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, key: str, asked: Request) -> ImageSet:
    """Return what `save` wrote.

    Raises:
        ValueError: it is not whole, or has another key.
        OSError, SafetensorError, KeyError: there is no such file, or it is damaged.
    """
    with safe_open(path, "pt") as file:
        metadata, names = file.metadata(), file.keys()
        tensors = {name: file.get_tensor(name) for name in names}
    if metadata["sha256"] != checksum(key, metadata["words"], tensors):
        raise ValueError(f"{path} is not what was written")
    words = json.loads(metadata["words"])
    words |= {field: tuple(words[field]) for field in ("classes", "mean", "std")}
    on_device = {name: x.to(asked.device) for name, x in tensors.items()}
    parts = {
        name: Images(on_device[f"{name}.pixels"], on_device[f"{name}.labels"])
        for name in PARTS
        if f"{name}.pixels" in tensors
    }
    return ImageSet(parts["train"], parts["test"], parts.get("unlabelled"), **words)


def checksum(key: str, words: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the sha256 of a set's key, of its words, pixels and labels."""
    digest = hashlib.sha256(repr((key, words)).encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()
