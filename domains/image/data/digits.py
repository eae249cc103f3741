"""scikit-learn's handwritten digits, as they are and shifted: the sets that need no file."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import interpolate

from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import (
    ImageFiles,
    Images,
    ImageSet,
    on_device,
    split_held_out,
)

Array = np.ndarray[Any, np.dtype[Any]]

SEED = 20262  # of the shifts
MAX_SHIFT_PIXELS = 2  # pixels of the farthest shift


def load_embedded(
    about: ImageDataset, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """Read scikit-learn's digits as they are."""
    return enlarged(grey_digits(), size, device)


def load_shifted(
    about: ImageDataset, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """Read scikit-learn's digits, each moved by up to two pixels."""
    return enlarged(shifted(grey_digits()), size, device)


def grey_digits() -> Array:
    """Return the digits (N, 8, 8) in 256 levels."""
    grey: Array = (load_digits().images * (255 / 16)).round().astype(np.uint8)
    return grey


def enlarged(grey: Array, size: int, device: torch.device) -> tuple[ImageSet, str]:
    """Enlarge the digits to the size of views; the hash is of 8 x 8 pixels."""
    data = load_digits()
    labels = torch.from_numpy(data.target.astype(np.int64))
    small, digest = on_device(
        split_held_out(torch.from_numpy(grey)[:, None], labels),
        map(str, data.target_names),
        torch.device("cpu"),
    )
    train, test_images = (enlarge(part, size, device) for part in (small.train, small.test))
    return ImageSet(train, test_images, None, small.classes, drawn=True), digest


def shifted(images: Array) -> Array:
    """Return images (N, height, width), each moved by up to two pixels down or up and sideways.

    A pixel then says little about the class, and what a network must learn is the shape. The draws
    are raw integers of PCG64, which no release of numpy changes.

    >>> shifted(np.ones((2, 8, 8), np.uint8)).sum(axis=(1, 2)).tolist()
    [48, 42]
    """
    height, width = images.shape[1:]
    wide = np.pad(
        images, ((0, 0), (MAX_SHIFT_PIXELS, MAX_SHIFT_PIXELS), (MAX_SHIFT_PIXELS, MAX_SHIFT_PIXELS))
    )
    places = np.random.PCG64(SEED).random_raw(2 * len(images)).reshape(-1, 2) % (
        2 * MAX_SHIFT_PIXELS + 1
    )
    cut = [
        image[y : y + height, x : x + width]
        for image, (y, x) in zip(wide, places.tolist(), strict=True)
    ]
    return np.stack(cut)


def enlarge(images: Images | ImageFiles, size: int, device: torch.device) -> Images:
    """Grey images in all three colours at another size."""
    rows = torch.arange(len(images), device=images.labels.device)
    large = interpolate(images.batch(rows).float(), (size, size), mode="bilinear", antialias=True)
    return Images(
        large.round().byte().expand(-1, 3, -1, -1).contiguous().to(device), images.labels.to(device)
    )
