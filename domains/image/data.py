"""Images: CIFAR, STL-10, Tiny-ImageNet, ImageNet-100, scikit-learn's digits and anybody's folders, read strictly."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # ADNCE's code has them for all its sets
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RESIDENT_BYTES = 4 << 30  # a split whose pixels need more than that is read from its files batch by batch


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

    def select(self, rows: Tensor) -> "Images":
        """The split's images of those numbers: a validation part, or a small one."""
        return Images(self.pixels[rows], self.labels[rows])


@dataclass(frozen=True)
class ImageFiles:
    """One split that does not fit: the same interface, each batch decoded from its files by a pool of threads.

    The shorter side of each image is resized to `stored`, and the middle (stored, stored) is kept, so that a batch is
    one tensor; crops are therefore drawn from that square and not from the whole picture.
    """

    files: tuple[Path, ...]
    labels: Tensor  # (N,) int64 on the device
    stored: int

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, stored, stored) uint8 on the device: the images of those numbers, decoded now."""
        raise NotImplementedError

    def select(self, rows: Tensor) -> "ImageFiles":
        """The split's images of those numbers: a validation part, or a small one."""
        return ImageFiles(tuple(self.files[row] for row in rows.tolist()), self.labels[rows], self.stored)


@dataclass(frozen=True)
class ImageSet:
    """A dataset of images in its published split."""

    train: Images | ImageFiles  # labelled
    test: Images | ImageFiles
    unlabelled: Images | ImageFiles | None  # STL-10's: what an encoder trains on besides train
    classes: tuple[str, ...]
    mean: tuple[float, float, float]  # of normalisation, of each colour in [0, 1]
    std: tuple[float, float, float]
    notes: dict[str, Any] = field(default_factory=dict)  # counted oddities: grey, alpha, 16-bit, resized ...


def load(dataset: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """A set of images by name and the sha256 of its content.

    Args:
        dataset: a declared set, or `folder:PATH` (absolute, from here, or from the data root) with
            train/CLASS/FILE and test/CLASS/FILE (or val), or with CLASS/FILE and a seeded stratified fifth as the test.
        size: of the views in pixels. Images that all have one size of at most 96 pixels keep it; the embedded digits
            are enlarged to `size`; others are stored with `stored_size(size)` pixels a side.
        data_root: a folder that already holds the files.
        device: where pixels and labels go.

    Raises:
        UserError: unknown name, no file and no network, or a file that is no image.
    """
    raise NotImplementedError
