"""scikit-learn's handwritten digits, as they are and shifted: the sets that need no file."""

from dataclasses import replace

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import interpolate

from contrastbench.domains.image.data import images as sets
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.samples import Array

SEED = 20262  # of the shifts
MAX_SHIFT_PIXELS = 2  # pixels of the farthest shift


def load_grey(about: ImageDataset, asked: sets.Request) -> sets.LoadedImages:
    """scikit-learn's digits, or each moved, enlarged to views; the hash is of 8 x 8 pixels."""
    data = load_digits()
    grey = (data.images * (255 / 16)).round().astype(np.uint8)
    grey = shifted(grey) if about.layout == "shifted" else grey
    labels = torch.from_numpy(data.target.astype(np.int64))
    small = sets.split_held_out(torch.from_numpy(grey)[:, None], labels)
    size, large = (asked.size, asked.size), {}
    for part, (x, y) in small.items():
        wide = interpolate(x.float(), size, mode="bilinear", antialias=True).round().byte()
        large[part] = (wide.expand(-1, 3, -1, -1).contiguous(), y)
    images, _ = sets.on_device(large, map(str, data.target_names), asked.device)
    return replace(images, drawn=True), sets.content_of(small)


def shifted(images: Array) -> Array:
    """Return images (N, height, width), each moved by up to two pixels down or up and sideways.

    A pixel then says little about the class, and what a network must learn is the shape. The draws
    are raw integers of PCG64, which no release of numpy changes.

    >>> shifted(np.ones((2, 8, 8), np.uint8)).sum(axis=(1, 2)).tolist()
    [48, 42]
    """
    height, width = images.shape[1:]
    most = MAX_SHIFT_PIXELS
    wide = np.pad(images, ((0, 0), (most, most), (most, most)))
    drawn = np.random.PCG64(SEED).random_raw(2 * len(images)).reshape(-1, 2)
    places = zip(wide, (drawn % (2 * most + 1)).tolist(), strict=True)
    return np.stack([image[y : y + height, x : x + width] for image, (y, x) in places])
