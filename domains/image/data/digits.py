"""scikit-learn's handwritten digits: the set that needs no file."""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import interpolate

from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import ImageFiles, Images, ImageSet, divided, on_device


def load_embedded(
    about: ImageDataset, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """scikit-learn's digits, enlarged to the size of views; the hash is of 8 x 8 pixels."""
    data = load_digits()
    pixels = torch.from_numpy((data.images * (255 / 16)).round().astype(np.uint8))[:, None]
    labels = torch.from_numpy(data.target.astype(np.int64))
    small, digest = on_device(
        divided(pixels, labels), map(str, data.target_names), torch.device("cpu")
    )
    train, test_images = (enlarge(part, size, device) for part in (small.train, small.test))
    return ImageSet(train, test_images, None, small.classes, drawn=True), digest


def enlarge(images: Images | ImageFiles, size: int, device: torch.device) -> Images:
    """Grey images in all three colours at another size."""
    rows = torch.arange(len(images), device=images.labels.device)
    large = interpolate(images.batch(rows).float(), (size, size), mode="bilinear", antialias=True)
    return Images(
        large.round().byte().expand(-1, 3, -1, -1).contiguous().to(device), images.labels.to(device)
    )
