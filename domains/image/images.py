"""A set of images in its splits, each in memory or in its files."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastbench.domains.image import decode
from contrastbench.domains.image.decode import ReadBytes
from contrastbench.domains.image.views import Policy, draw_crops, happens, random_crop, to_float

# ADNCE's code has them for all its sets
CIFAR_MEAN, CIFAR_STD = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
HELD_OUT = 0.2  # of each class, where a folder has no test part


@dataclass(frozen=True)
class Images:
    """One split that fits into memory: all pixels on the device of the run."""

    pixels: Tensor  # (N, 3, H, W) uint8
    labels: Tensor  # (N,) int64 on the same device; -1 where there is none

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, H, W) uint8 on the device: the images of those numbers."""
        return self.pixels[rows]

    def crops(self, policies: Sequence[Policy], rng: torch.Generator) -> Iterator[Tensor]:
        """(N, 3, size, size) in [0, 1] for each policy: a crop of each image, drawn when asked."""
        return (random_crop(self.pixels, policy, rng) for policy in policies)

    def select(self, rows: Tensor) -> "Images":
        """The split's images of those numbers: a validation part, or a small one."""
        return Images(self.pixels[rows], self.labels[rows])


@dataclass(frozen=True)
class ImageFiles:
    """One split that is decoded from its files, batch by batch, by threads.

    A batch is one tensor: the shorter side of each image is resized to `stored`, and the middle
    (stored, stored) is kept. Crops are drawn from that square, or from the whole picture; then a
    picture is decoded once for all its crops, and only these are kept.
    """

    names: tuple[str, ...]
    read: ReadBytes
    labels: Tensor  # (N,) int64 on the device
    stored: int | None  # None: all files have one size, and keep it
    sides: Tensor | None = (
        None  # (N, 2) height and width on the device: crops are of whole pictures
    )

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, stored, stored) uint8 on the device: the images of those numbers, decoded now."""
        return self.on_device(list(decode.pool().map(self.pixels, rows.tolist())))

    def pixels(self, row: int) -> Tensor:
        """(3, stored, stored) uint8 of one image."""
        return decode.decode(self.names[row], self.read(self.names[row]), self.stored)

    def on_device(self, images: Sequence[Tensor]) -> Tensor:
        """Images of one size as a tensor on the device."""
        device, pixels = self.labels.device, torch.stack(list(images))
        return (
            pixels.pin_memory().to(device, non_blocking=True)
            if device.type == "cuda"
            else pixels.to(device)
        )

    def crops(self, policies: Sequence[Policy], rng: torch.Generator) -> Iterator[Tensor]:
        """(N, 3, size, size) in [0, 1] for each policy: a crop of each image."""
        if self.sides is None:
            rows = torch.arange(len(self), device=self.labels.device)
            yield from Images(self.batch(rows), self.labels).crops(policies, rng)
            return
        n, (height, width) = len(self), self.sides.unbind(1)
        boxes = [draw_crops(n, height, width, p.scale, p.ratio, rng) for p in policies]
        sizes = [policy.size for policy in policies]
        places = torch.stack(boxes, dim=1).int().tolist()
        parts = decode.pool().map(
            lambda row: decode.crops(
                self.names[row], self.read(self.names[row]), places[row], sizes
            ),
            range(n),
        )
        for policy, crops in zip(policies, zip(*parts, strict=True), strict=True):
            flipped = happens(n, policy.flip, rng).view(-1, 1, 1, 1)
            x = to_float(self.on_device(crops))
            yield torch.where(flipped, x.flip(3), x)

    def select(self, rows: Tensor) -> "ImageFiles":
        """The split's images of those numbers: a validation part, or a small one."""
        names = tuple(self.names[row] for row in rows.tolist())
        sides = None if self.sides is None else self.sides[rows]
        return replace(self, names=names, labels=self.labels[rows], sides=sides)


@dataclass(frozen=True)
class ImageSet:
    """A dataset of images in its published split."""

    train: Images | ImageFiles  # labelled
    test: Images | ImageFiles
    unlabelled: Images | ImageFiles | None  # STL-10's: what an encoder trains on besides train
    classes: tuple[str, ...]
    mean: tuple[float, float, float] = CIFAR_MEAN  # of normalisation, of each colour in [0, 1]
    std: tuple[float, float, float] = CIFAR_STD
    # counted oddities: grey, alpha, 16-bit, resized ...
    notes: dict[str, Any] = field(default_factory=dict)


def on_device(
    parts: dict[str, tuple[Tensor, Tensor]], classes: Iterable[str], device: torch.device
) -> tuple[ImageSet, str]:
    """A set of (pixels, labels) of its parts, on the device, and their sha256."""
    digest = hashlib.sha256(
        repr([(name, tuple(pixels.shape)) for name, (pixels, _) in parts.items()]).encode()
    )
    for pixels, labels in parts.values():
        digest.update(pixels.numpy().data)
        digest.update(labels.numpy().data)
    train, test, *rest = (
        Images(pixels.to(device), labels.to(device)) for pixels, labels in parts.values()
    )
    return ImageSet(train, test, rest[0] if rest else None, tuple(classes)), digest.hexdigest()


def held_out(labels: Tensor) -> Tensor:
    """(N,) bool: a fifth of each class, at least one, the same for every run."""
    chosen = np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng(0)
    for label in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels.numpy() == label)
        chosen[rng.permutation(rows)[: max(1, round(HELD_OUT * len(rows)))]] = True
    return torch.from_numpy(chosen)
