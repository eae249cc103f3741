"""Binary versions of sets of images, CIFAR and STL-10; CIFAR from recoded pictures too.

However CIFAR is kept, its images stand in one order, by class and then by the sha256 of their
pixels: the same content gives the same numbers.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.archives import read_members
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import LoadedImages, PartArrays, Request, on_device
from contrastbench.domains.reading import reading
from contrastbench.errors import UserError


class Binary(NamedTuple):
    """The files of a binary version."""

    train: tuple[str, ...]
    test: str
    words: str
    labels: int  # of each record; the last one is the class


BINARIES = {  # by their folders
    "cifar-10-batches-bin": Binary(
        tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin", "batches.meta.txt", 1
    ),
    "cifar-100-binary": Binary(("train.bin",), "test.bin", "fine_label_names.txt", 2),
}


def load_cifar(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load the first images of each class, as many as the declared sizes say: all, or a few."""
    samples, classes = ordered_parts(about, asked.data_root)
    number, *counts = about.sizes
    first = PartArrays()
    for (part, (pixels, labels)), count in zip(samples.items(), counts, strict=True):
        place = torch.arange(len(labels)) - torch.searchsorted(labels, labels)  # in its class
        kept = place < count // number
        first[part] = pixels[kept], labels[kept]
    return on_device(first, classes, asked.device)


def ordered_parts(about: ImageDataset, data_root: Path | None) -> tuple[PartArrays, Sequence[str]]:
    places = [data_root / name for name in about.places] if data_root else []
    path = next((path for path in places if path.is_file() or (path / "train").is_dir()), None)
    kept = decode.opened(path) if path else None
    samples, classes = from_pictures(kept) if kept else from_binary(about, data_root)
    return {part: canonical_order(*samples[part]) for part in ("train", "test")}, classes


def load_few_shot(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load all samples anew: those of the declared classes are tested, the others train."""
    samples, classes = from_binary(about, asked.data_root)
    pixels, labels = (torch.cat(parts) for parts in zip(*samples.values(), strict=True))
    with reading(about.name, about.again):
        numbers = [classes.index(word) for word in about.classes]
    tested = torch.isin(labels, torch.tensor(numbers))
    rows = {"train": ~tested, "test": tested}
    parts = {part: canonical_order(pixels[some], labels[some]) for part, some in rows.items()}
    return on_device(parts, classes, asked.device)


def canonical_order(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    hashes = [sha256(image.numpy().data).digest() for image in pixels.contiguous()]
    keys = list(zip(labels.tolist(), hashes, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return pixels[order], labels[order]


def from_binary(about: ImageDataset, data_root: Path | None) -> tuple[PartArrays, Sequence[str]]:
    """The binary version, found or downloaded: no pickles."""
    kept = BINARIES[about.layout]
    names = (*kept.train, kept.test, kept.words)
    raw = read_members(about, about.layout, data_root, names)
    with reading(about.name, about.again):
        train = binary_records(b"".join(raw[file] for file in kept.train), 50_000, kept.labels)
        samples = {"train": train, "test": binary_records(raw[kept.test], 10_000, kept.labels)}
        return samples, raw[kept.words].decode().split()


def binary_records(raw: bytes, count: int, labels: int) -> tuple[Tensor, Tensor]:
    table = shaped_bytes(raw, (count, labels + 3 * 32 * 32))
    classes = labels_below(table[:, labels - 1].long(), 10**labels)
    return table[:, labels:].reshape(-1, 3, 32, 32), classes


def from_pictures(kept: decode.Kept) -> tuple[PartArrays, Sequence[str]]:
    """Read pictures whose folders name their part and class, PART/CLASS/FILE."""
    paths = [path for path in decode.picture_paths(kept.names) if len(path.parts) > 2]
    classes = sorted({path.parent.name for path in paths})
    samples = {}
    for part in ("train", "test"):
        mine = [path for path in paths if path.parts[-3] == part]
        labels = torch.tensor([classes.index(path.parent.name) for path in mine])
        samples[part] = (picture_pixels([str(path) for path in mine], kept.read), labels)
    return samples, classes


def picture_pixels(names: Sequence[str], read: decode.ReadBytes) -> Tensor:
    """(N, 3, 32, 32) uint8 of all pictures."""

    def decoded(name: str) -> Tensor:
        image = decode.decode(name, read(name), None)
        if image.shape != (3, 32, 32):
            raise UserError(f"{name} does not have 32 x 32 pixels: {decode.REPLACE}")
        return image

    pictures = list(decode.in_threads(decoded, names, "reading pictures"))
    return torch.stack(pictures) if pictures else torch.empty(0, 3, 32, 32, dtype=torch.uint8)


def load_stl(about: ImageDataset, asked: Request) -> LoadedImages:
    classes, train, test = about.sizes
    counts = {"train": train, "test": test, "unlabeled": about.unlabelled}
    files = [f"{part}_{kind}.bin" for part in counts for kind in "Xy"]
    files.remove("unlabeled_y.bin")
    raw = read_members(about, "stl10_binary", asked.data_root, (*files, "class_names.txt"))
    parts = {}
    with reading(about.name, about.again):
        for part, count in counts.items():
            columns = shaped_bytes(raw.pop(f"{part}_X.bin"), (count, 3, 96, 96))
            labels = shaped_bytes(raw.get(f"{part}_y.bin", bytes(count)), (count,)).long() - 1
            parts[part] = columns.mT.contiguous(), labels_below(labels, classes)
        return on_device(parts, raw["class_names.txt"].decode().split(), asked.device)


def labels_below(labels: Tensor, classes: int) -> Tensor:
    if labels.max() >= classes:
        raise ValueError(f"class {int(labels.max())} of {classes}")
    return labels


def shaped_bytes(raw: bytes, shape: tuple[int, ...]) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(shape)
