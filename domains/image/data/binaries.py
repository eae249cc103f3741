"""Binary versions of sets of images, and STL-10, which is one."""

import numpy as np
import torch
from torch import Tensor

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.image.data.archives import archive_fix, read_members
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import LoadedImages, Request, on_device
from contrastbench.domains.reading import reading
from contrastbench.errors import UserError


def labels_below(about: Dataset, labels: Tensor, classes: int) -> Tensor:
    """The labels, which are no more than the classes.

    Raises:
        UserError: one is.
    """
    with reading(about.name, archive_fix(about)):
        if labels.max() >= classes:
            raise ValueError(f"class {int(labels.max())} of {classes}")
    return labels


def load_stl(about: ImageDataset, asked: Request) -> LoadedImages:
    """STL-10 in the binary version, its unlabelled images included."""
    classes, train, test = about.sizes
    counts = {"train": train, "test": test, "unlabeled": about.unlabelled}
    files = [f"{part}_{kind}.bin" for part in counts for kind in "Xy"]
    files.remove("unlabeled_y.bin")
    raw = read_members(about, "stl10_binary", asked.data_root, (*files, "class_names.txt"))
    parts = {}
    for part, count in counts.items():
        columns = shaped_bytes(about, raw.pop(f"{part}_X.bin"), (count, 3, 96, 96))
        labels = shaped_bytes(about, raw.get(f"{part}_y.bin", bytes(count)), (count,)).long() - 1
        parts[part] = columns.mT.contiguous(), labels_below(about, labels, classes)
    return on_device(parts, class_names(about, raw["class_names.txt"]), asked.device)


def class_names(about: Dataset, raw: bytes) -> list[str]:
    """The words of a text file."""
    with reading(about.name, archive_fix(about)):
        return raw.decode().split()


def shaped_bytes(about: Dataset, raw: bytes, shape: tuple[int, ...]) -> Tensor:
    """Bytes as an array of that shape."""
    expected = int(np.prod(shape))
    if len(raw) != expected:
        fault = f"{len(raw)} bytes instead of {expected}"
        raise UserError(f"{about.name} is damaged: {fault}; {archive_fix(about)}")
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(shape)
