"""Decoded images of declared sets, kept in the cache, so that the next run decodes nothing."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_in
from safetensors.torch import save as bytes_of
from torch import Tensor

from contrastbench.domains import download, own
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import Images, ImageSet, LoadedImages, Request

VERSION = 4  # of what decoding gives: who changes a pixel of it raises this
PARTS = ("train", "test", "unlabelled")
FIELDS = ("classes", "validation", "drawn", "mean", "std", "notes")
DIGEST = 32  # bytes of a sha256, at the end of a file


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
        return load(path, asked.device)
    images, digest = read(about, asked)
    with suppress(OSError):  # a full disk costs time alone
        save(path, images, digest)
    return images, digest


def save(path: Path, images: ImageSet, digest: str) -> None:
    """Write a set that is in memory with the sha256 of its content, and that of what is written."""
    facts = {field: getattr(images, field) for field in FIELDS}
    words = json.dumps({"digest": digest, **facts}).encode()
    tensors: dict[str, Tensor] = {"words": torch.frombuffer(bytearray(words), dtype=torch.uint8)}
    for name in PARTS:
        part = getattr(images, name)
        if isinstance(part, Images):
            tensors[f"{name}.pixels"] = part.pixels.cpu().contiguous()
            tensors[f"{name}.labels"] = part.labels.cpu()
        elif part is not None:
            return
    data = bytes_of(tensors)
    download.write_whole(path, data + hashlib.sha256(data).digest())


def load(path: Path, device: torch.device) -> LoadedImages:
    """Return what `save` wrote.

    Raises:
        ValueError: it is not whole.
        OSError, SafetensorError, KeyError: there is no such file, or it is damaged.
    """
    written = path.read_bytes()
    data = written[:-DIGEST]
    if hashlib.sha256(data).digest() != written[-DIGEST:]:
        raise ValueError(f"{path} is not what was written")
    tensors = tensors_in(data)
    words = json.loads(tensors.pop("words").numpy().tobytes())
    words |= {field: tuple(words[field]) for field in ("classes", "mean", "std")}
    digest = words.pop("digest")
    there = {name: x.to(device) for name, x in tensors.items()}
    parts = {
        name: Images(there[f"{name}.pixels"], there[f"{name}.labels"])
        for name in PARTS
        if f"{name}.pixels" in there
    }
    return ImageSet(parts["train"], parts["test"], parts.get("unlabelled"), **words), digest
