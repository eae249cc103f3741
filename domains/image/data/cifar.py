"""CIFAR: 32 x 32 photographs, from the binary version or from losslessly recoded pictures.

However they are kept, they stand in one order, by class and then by the sha256 of their pixels: the
same content gives the same numbers.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.archives import archive_fix, check_content, read_members
from contrastbench.domains.image.data.binaries import class_names, labels_below, shaped_bytes
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.decode import ReadBytes
from contrastbench.domains.image.data.images import (
    LoadedImages,
    Request,
    Samples,
    content_of,
    on_device,
)
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
    """Load all of CIFAR-10 or CIFAR-100.

    Raises:
        UserError: a file is damaged, or holds something else.
    """
    images, digest = on_device(*ordered_parts(about, asked.data_root), asked.device)
    check_content(about, digest)
    return images, digest


def load_first(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load the first samples of each class, as many as the declared sizes say.

    Raises:
        UserError: a file is damaged, or holds something else.
    """
    samples, classes = ordered_parts(about, asked.data_root)
    check_content(about, content_of(samples))
    number, *counts = about.sizes
    few = {
        part: first_of_each_class(*samples[part], count // number)
        for part, count in zip(samples, counts, strict=True)
    }
    return on_device(few, classes, asked.device)


def ordered_parts(about: ImageDataset, data_root: Path | None) -> tuple[Samples, Sequence[str]]:
    """Read the training and the test part in canonical order."""
    places = [data_root / name for name in about.places] if data_root else []
    path = next((path for path in places if path.is_file() or (path / "train").is_dir()), None)
    kept = decode.opened(path) if path else None
    samples, classes = from_pictures(kept) if kept else from_binary(about, data_root)
    return {part: canonical_order(*samples[part]) for part in ("train", "test")}, classes


def load_few_shot(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load all samples anew: those of the declared classes are tested, the others train."""
    samples, classes = from_binary(about, asked.data_root)
    pixels, labels = (torch.cat(parts) for parts in zip(*samples.values(), strict=True))
    with reading(about.name, archive_fix(about)):
        numbers = [classes.index(word) for word in about.classes]
    tested = torch.isin(labels, torch.tensor(numbers))
    rows = {"train": ~tested, "test": tested}
    parts = {part: canonical_order(pixels[some], labels[some]) for part, some in rows.items()}
    return on_device(parts, classes, asked.device)


def canonical_order(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The samples by class, and each class by the sha256 of its pixels."""
    hashes = [sha256(image.numpy().data).digest() for image in pixels.contiguous()]
    keys = list(zip(labels.tolist(), hashes, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return pixels[order], labels[order]


def first_of_each_class(pixels: Tensor, labels: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the first samples of each class; classes stand together."""
    starts = torch.searchsorted(labels, labels.unique())
    rows = (starts[:, None] + torch.arange(count)).flatten()
    return pixels[rows], labels[rows]


def from_binary(about: ImageDataset, data_root: Path | None) -> tuple[Samples, Sequence[str]]:
    """The binary version, found or downloaded: no pickles."""
    kept = BINARIES[about.layout]
    names = (*kept.train, kept.test, kept.words)
    raw = read_members(about, about.layout, data_root, names)
    train = binary_records(about, b"".join(raw[file] for file in kept.train), 50_000, kept.labels)
    samples = {"train": train, "test": binary_records(about, raw[kept.test], 10_000, kept.labels)}
    return samples, class_names(about, raw[kept.words])


def binary_records(
    about: ImageDataset, raw: bytes, count: int, labels: int
) -> tuple[Tensor, Tensor]:
    """Pixels and classes of CIFAR's records; the last of a record's labels is the class."""
    table = shaped_bytes(about, raw, (count, labels + 3 * 32 * 32))
    classes = labels_below(about, table[:, labels - 1].long(), 10**labels)
    return table[:, labels:].reshape(-1, 3, 32, 32), classes


def from_pictures(kept: decode.Kept) -> tuple[Samples, Sequence[str]]:
    """Read pictures whose folders name their part and class, PART/CLASS/FILE."""
    paths = [path for path in decode.picture_paths(kept.names) if len(path.parts) > 2]
    classes = sorted({path.parent.name for path in paths})
    samples = {}
    for part in ("train", "test"):
        mine = [path for path in paths if path.parts[-3] == part]
        labels = torch.tensor([classes.index(path.parent.name) for path in mine])
        samples[part] = (picture_pixels([str(path) for path in mine], kept.read), labels)
    return samples, classes


def picture_pixels(names: Sequence[str], read: ReadBytes) -> Tensor:
    """(N, 3, 32, 32) uint8 of all pictures.

    Raises:
        UserError: there is none, or one is damaged or of another size.
    """

    def decoded(name: str) -> Tensor:
        image = decode.decode(name, read(name), None)
        if image.shape != (3, 32, 32):
            raise UserError(f"{name} does not have 32 x 32 pixels: {decode.REPLACE}")
        return image

    pictures = list(decode.in_threads(decoded, names, "reading pictures"))
    return torch.stack(pictures) if pictures else torch.empty(0, 3, 32, 32, dtype=torch.uint8)
