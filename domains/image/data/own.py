"""Images that users bring: folders, and arrays of NumPy."""

import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrastbench.domains import download, own
from contrastbench.domains.image.data.archives import archive_fix, check_content
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.folders import load_folder
from contrastbench.domains.image.data.images import (
    LoadedImages,
    Request,
    Samples,
    on_device,
    split_held_out,
)
from contrastbench.domains.reading import UNPACKED, file_kind, member, member_names, reading
from contrastbench.errors import UserError

Array = np.ndarray[Any, np.dtype[Any]]
ARRAY_WORDS = {
    **dict.fromkeys(("images", "image", "imgs", "x", "data", "pixels"), "images"),
    **dict.fromkeys(("labels", "label", "y", "targets", "target", "classes"), "labels"),
}
READ_KEYS = ("images", "labels", "test_images", "test_labels")
CHANNELS = (1, 3)  # channels: grey, or red, green and blue
OwnReader = Callable[[str, Path | None, Request], LoadedImages]


def read_folder(what: str, data_root: Path | None, asked: Request) -> LoadedImages:
    """Files in folders, one for each class."""
    return load_folder(own.find_path(what, data_root, Path.is_dir).resolve(), asked)


def read_npz(what: str, data_root: Path | None, asked: Request) -> LoadedImages:
    """Arrays `images` and `labels`, and perhaps `test_images` and `test_labels`, or the like."""
    return read_arrays(own.find_path(what, data_root), asked)


def read_arrays(path: Path, asked: Request) -> LoadedImages:
    """Read the arrays of a file of numpy.savez.

    Raises:
        UserError: it is none, or they are no pictures with classes.
    """
    if (kind := file_kind(path)) not in ("a zip archive", ""):
        raise UserError(f"{path} is {kind}, not arrays by name: write it by numpy.savez")
    with zipfile.ZipFile(path) as archive:
        there = member_names(archive)
        keys = array_keys(path, [name.removesuffix(".npy") for name in there])
        arrays = {key: array(archive, name) for key, name in keys.items() if key in READ_KEYS}
    tested = "test_images" in arrays
    classes, y = np.unique(arrays["labels"], return_inverse=True)
    parts = {"train": (array_pixels(path, "images", arrays), torch.from_numpy(y.reshape(-1)))}
    if tested:
        unknown = sorted({*np.unique(arrays["test_labels"]).tolist()} - {*classes.tolist()})
        if unknown:
            raise UserError(f"{path}: class {unknown[0]} has no training images")
        test_y = torch.from_numpy(np.searchsorted(classes, arrays["test_labels"]).reshape(-1))
        parts["test"] = (array_pixels(path, "test_images", arrays), test_y)
    else:
        parts = split_held_out(*parts["train"])
    check_training_classes(path, parts, len(classes))
    images, digest = on_device(parts, map(str, classes.tolist()), asked.device)
    others = [name for key, name in keys.items() if key not in READ_KEYS]
    notes = {"arrays left out": others} if others else {}
    return replace(images, drawn=not tested, notes=notes), digest


def load_declared_arrays(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load a declared set that is kept as arrays of a training and of a test part.

    Raises:
        UserError: the file is damaged, or holds something else.
    """
    path = download.local_file(about, asked.data_root) or download.fetch_file(about)
    with reading(path, archive_fix(about)):
        images, digest = read_arrays(path, asked)
    check_content(about, digest)
    return images, digest


def array_keys(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the names of the arrays of pictures and classes, by what they are.

    >>> array_keys(Path("m.npz"), ["x_train", "y_train", "x_test", "y_test"])["test_labels"]
    'y_test'
    """
    arrays: dict[str, str] = {}
    for name in names:
        words = re.split("[_ -]", name.lower())
        parts = [part for word in words if (part := own.part_name(word))]
        kinds = [kind for word in words if (kind := ARRAY_WORDS.get(word))]
        known = len(kinds) == 1 and len(parts) + 1 == len(words) <= 2
        part = f"{parts[0]}_" if known and parts and parts != ["train"] else ""
        key = part + kinds[0] if known else name
        if key in arrays:
            raise UserError(f"{path} has {arrays[key]} and {name}: keep one of them")
        arrays[key] = name
    tested = {"test_images", "test_labels"} & arrays.keys()
    for key in READ_KEYS if tested else READ_KEYS[:2]:
        if key not in arrays:
            unnamed = any(re.fullmatch(r"arr_\d+", name) for name in names)
            fix = ": give them names, as in numpy.savez(FILE, images=x, labels=y)" * unnamed
            raise UserError(f"{path} has no array {key}: it holds {', '.join(names)}{fix}")
    return arrays


def array(archive: zipfile.ZipFile, key: str) -> Array:
    """An array of a bounded size, of numbers or texts: nothing is unpickled.

    Raises:
        UserError: it holds Python objects, as texts of pandas do.
    """
    data = BytesIO(member(archive, f"{key}.npy", UNPACKED))
    try:
        return np.lib.format.read_array(data, allow_pickle=False)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        fault = f"{archive.filename}: {key} holds Python objects: save it as .astype(str)"
        raise UserError(fault) from None


def array_pixels(path: Path, key: str, arrays: dict[str, Array]) -> torch.Tensor:
    """(N, 3, height, width) uint8; grey in all three colours."""
    images, labels = arrays[key], arrays[key.replace("images", "labels")]
    if not len(images):
        raise UserError(f"{path}: {key} holds no images")
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        fix = "give uint8 of shape (N, height, width) or (N, height, width, 3)"
        raise UserError(f"{path}: {key} is {images.dtype} of shape {images.shape}: {fix}")
    if labels.shape not in ((len(images),), (len(images), 1)) or labels.dtype.kind not in "iubUS":
        kind = f"{labels.dtype} of shape {labels.shape} for {len(images)} images"
        raise UserError(f"{path}: its labels are {kind}: give one whole number or text an image")
    if images.ndim == 3:
        images = images[..., None]
    if images.shape[3] in CHANNELS:
        images = images.transpose(0, 3, 1, 2)
    if images.shape[1] not in CHANNELS or min(images.shape[2:]) < 8:
        raise UserError(f"{path}: {key} has shape {arrays[key].shape}: 1 or 3 colours, 8 pixels")
    return torch.from_numpy(np.ascontiguousarray(np.repeat(images, 3 // images.shape[1], axis=1)))


def check_training_classes(path: Path, parts: Samples, classes: int) -> None:
    """Raise unless there are classes to tell apart, each with training images."""
    (train, y), (test, _) = parts["train"], parts["test"]
    if classes < 2:
        raise UserError(
            f"{path} has a single class, so nothing can be classified: add images of another class"
        )
    if len(y.unique()) < classes or not len(test):
        raise UserError(f"{path}: a class has one image: training and test part need one each")
    if train.shape[1:] != test.shape[1:]:
        raise UserError(f"{path}: training and test images have different sizes: resize one part")


READERS: dict[str, OwnReader] = {"folder": read_folder, "npz": read_npz}
