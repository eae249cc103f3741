"""A set of image files: stored in one size, in memory if they fit."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data import images as sets
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.decode import Header, ReadBytes
from contrastbench.domains.image.views.transforms import stored_size
from contrastbench.domains.progress import tracked
from contrastbench.domains.samples import chosen
from contrastbench.errors import UserError

# A split whose pixels need more than that is read from its files batch by batch: on a CPU, whose
# processes each hold one, and on a card as a share of the memory that is free.
RESIDENT_BYTES, RESIDENT_SHARE = 4 << 30, 1 / 3
DECODED_AT_ONCE = 256  # images that are decoded and copied to the device at once
TESTED_TWICE = "test images that are training images too"  # by the bytes of their files
MAX_KEPT_SIDE = 96  # images that all have one size of at most so many pixels a side keep it

SIZES = "{} classes, {} training and {} test images"

Label = int | tuple[int, ...]  # a class, or 1, 0 or -1 for each class
FilesByClass = Mapping[str, Sequence[str]]  # names of files, in the order of classes


@dataclass(frozen=True)
class Part:
    """Names of a part's image files, with the class of each, or 1, 0 or -1 for each class."""

    names: tuple[str, ...]
    labels: tuple[Label, ...]
    groups: sets.Names = ()

    def select(self, rows: Sequence[int]) -> "Part":
        labels = tuple(self.labels[row] for row in rows)
        return Part(chosen(self.names, rows), labels, chosen(self.groups, rows))


def part_of(files: Sequence[tuple[str, Label]]) -> Part:
    labels = (y if isinstance(y, tuple) else int(y) for _, y in files)  # torchvision has NumPy's
    return Part(tuple(name for name, _ in files), tuple(labels))


def by_label(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names of files by label, from pairs of a label and a name."""
    named: dict[str, list[str]] = {}
    for label, name in files:
        named.setdefault(label, []).append(name)
    return named


def class_files(files: FilesByClass, classes: Sequence[str]) -> Part:
    return part_of([(name, k) for k, label in enumerate(classes) for name in files.get(label, [])])


@dataclass(frozen=True)
class Parts:
    """Training and test files of a set."""

    train: Part
    test: Part
    classes: tuple[str, ...]
    drawn: bool = False  # whether the test files are a seeded share of each class
    listed: bool = False  # whether classes stand in a list, so that no name tells an image's

    @classmethod
    def by_class(cls, train: FilesByClass, test: FilesByClass) -> "Parts":
        classes = tuple({**train, **test})
        return cls(class_files(train, classes), class_files(test, classes), classes)


def check_sizes(about: ImageDataset, parts: Parts, where: object, each: int = 1) -> None:
    counts = (each * len(part.names) for part in (parts.train, parts.test))
    found = (len(parts.classes), *counts)
    if about.sizes not in ((), found):
        theirs, said = SIZES.format(*found), SIZES.format(*about.sizes)
        raise UserError(f"{where} has {theirs}, {about.name} {said}: {about.again}")


def from_files(
    parts: Parts,
    read: ReadBytes,
    asked: sets.Request,
    notes: Mapping[str, Any] | None = None,
    largest: int = MAX_KEPT_SIDE,
) -> sets.LoadedImages:
    """A set of image files; its hash is that of their names, classes and bytes, however decoded.

    Pictures that all have one size of at most `largest` pixels a side keep it. Whole pictures of
    several sizes, or of larger ones, stay files.
    """
    names, trained = parts.train.names + parts.test.names, len(parts.train.names)
    look = decode.in_threads(lambda n: decode.image_header(n, read(n)), names, "checking images")
    headers = [*look]
    sizes = {(header.width, header.height) for header in headers}
    kept = len(sizes) == 1 and max(*sizes.pop()) <= max(largest, asked.size)
    side = None if kept else stored_size(asked.size)
    whole = asked.whole and side is not None
    train = stored(parts.train, read, headers, side, asked.device, whole)
    test = stored(parts.test, read, headers, side, asked.device)
    known = dict(notes or {}) | decode.oddities(headers) | resized(headers, side)
    seen = {header.sha256 for header in headers[:trained]}
    if twice := sum(header.sha256 in seen for header in headers[trained:]):
        known[TESTED_TWICE] = twice
    images = sets.ImageSet(train, test, None, parts.classes, drawn=parts.drawn, notes=known)
    return images, content_of_files(parts, names, headers)


def photographs(
    about: ImageDataset, parts: Parts, where: Path, read: ReadBytes, asked: sets.Request
) -> sets.LoadedImages:
    check_sizes(about, parts, where)
    images, digest = from_files(parts, read, asked)
    return replace(images, mean=sets.IMAGENET_MEAN, std=sets.IMAGENET_STD), digest


def content_of_files(parts: Parts, names: Sequence[str], headers: Sequence[Header]) -> str:
    digest = hashlib.sha256(repr((parts.classes, len(parts.train.names))).encode())
    for name, header in zip(names, headers, strict=True):
        digest.update(f"{name}\0{header.sha256}\n".encode())
    for part in (parts.train, parts.test):
        digest.update("\x1f".join(part.groups).encode())
    if parts.listed:
        digest.update(f"{parts.train.labels}{parts.test.labels}".encode())
    return digest.hexdigest()


def resized(headers: list[Header], side: int | None) -> dict[str, int]:
    if side is None:
        return {}
    smaller = sum(min(header.width, header.height) < side for header in headers)
    others = sum((header.width, header.height) != (side, side) for header in headers) - smaller
    counts = {f"enlarged to {side} x {side}": smaller, f"reduced or cut to {side} x {side}": others}
    return {note: count for note, count in counts.items() if count}


def stored(
    part: Part,
    read: ReadBytes,
    headers: list[Header],
    side: int | None,
    device: torch.device,
    whole: bool = False,
) -> sets.Images | sets.ImageFiles:
    """Return a part's pixels if they fit, else its files; the `whole` pictures come first."""
    labels = torch.tensor(part.labels, device=device)
    shape = (headers[0].height, headers[0].width) if side is None else (side, side)
    files = sets.ImageFiles(part.names, read, labels, side, shape, groups=part.groups)
    if whole:
        sides = [(header.height, header.width) for header in headers[: len(files)]]
        return replace(files, sides=torch.tensor(sides, device=device).float())
    cuda = device.type == "cuda"
    room = RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0] if cuda else RESIDENT_BYTES
    if len(files) * 3 * shape[0] * shape[1] > room:
        return files
    pixels = torch.empty(len(files), 3, *shape, dtype=torch.uint8, device=device)
    parts = torch.arange(len(files), device=device).split(DECODED_AT_ONCE)
    decoded = files.ahead(parts)
    for k in tracked(range(len(parts)), "decoding images"):
        pixels[k * DECODED_AT_ONCE : k * DECODED_AT_ONCE + len(parts[k])] = decoded(k).pixels
    return sets.Images(pixels, labels, part.groups)
