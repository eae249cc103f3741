"""Sets of images by name: declared ones, scikit-learn's digits and anybody's folders."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import interpolate

from contrastbench.domains import own as owned
from contrastbench.domains.image.data import own
from contrastbench.domains.image.data.binaries import load_stl
from contrastbench.domains.image.data.cifar import FEW_SHOT, load_cifar, load_few_shot
from contrastbench.domains.image.data.datasets import SOURCES
from contrastbench.domains.image.data.disjoint import LAYOUTS, load_disjoint
from contrastbench.domains.image.data.imagenet import load_imagenet, load_tiny
from contrastbench.domains.image.data.images import ImageFiles, Images, ImageSet, divided, on_device
from contrastbench.domains.image.data.transfer_sets import SETS, load_transfer


def load(
    dataset: str,
    size: int,
    data_root: Path | None,
    device: torch.device,
    whole: bool = False,
) -> tuple[ImageSet, str]:
    """A set of images by name and the sha256 of its content.

    Args:
        dataset: a declared set, or one's own: `folder:PATH` (absolute, from here, or from the data
            root) with train/CLASS/FILE and test/CLASS/FILE (or val), or with CLASS/FILE and a
            seeded fifth of each class as test; `npz:FILE`; `hf:NAME@REVISION`.
        size: of the views in pixels. Images that all have one size of at most 96 pixels keep it;
            the embedded digits are enlarged to `size`; others are stored with `stored_size(size)`
            pixels a side.
        data_root: a folder that already holds the files.
        device: where pixels and labels go.
        whole: crops are of whole pictures, decoded at each step, where stored ones were cut.

    Raises:
        UserError: unknown name, no file and no network, or a file that is no image.
    """
    if parsed := owned.parse(dataset, SOURCES):
        return own.load(*parsed, size, data_root, device, whole)
    if dataset not in LOADERS:
        raise owned.unknown_dataset("image", dataset, LOADERS, SOURCES, data_root)
    return load_declared(dataset, size, data_root, device, whole)


@lru_cache(maxsize=1)
def load_declared(
    dataset: str, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """A declared set; the last one stays in memory for the next seed."""
    return LOADERS[dataset](dataset, size, data_root, device, whole)


def load_embedded(
    name: str, size: int, data_root: Path | None, device: torch.device, whole: bool
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


LOADERS: dict[str, Callable[[str, int, Path | None, torch.device, bool], tuple[ImageSet, str]]] = {
    "digits": load_embedded,
    "CIFAR-10": load_cifar,
    "CIFAR-10-5k": load_cifar,
    "CIFAR-100": load_cifar,
    FEW_SHOT: load_few_shot,
    "STL-10": load_stl,
    "Tiny-ImageNet": load_tiny,
    "ImageNet-100": load_imagenet,
    "ImageNet": load_imagenet,
    **dict.fromkeys(LAYOUTS, load_disjoint),
    **dict.fromkeys(SETS, load_transfer),
}
