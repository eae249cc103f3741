"""Sets of images by name: declared ones, and those that users bring, folders or arrays of NumPy."""

import re
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrastbench.domains import download, own, saved
from contrastbench.domains.declaration import reader_of
from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data import images as sets
from contrastbench.domains.image.data.datasets import DATASETS, SOURCES, ImageDataset
from contrastbench.domains.image.data.files import Parts, class_files, from_files
from contrastbench.domains.image.data.folders import folder_parts, split_fifth
from contrastbench.domains.reading import (
    UNPACKED,
    file_kind,
    member,
    member_names,
    reading,
    refuse,
)
from contrastbench.domains.samples import Array
from contrastbench.errors import UserError

ARRAY_WORDS = {
    **dict.fromkeys(("images", "image", "imgs", "x", "data", "pixels"), "images"),
    **dict.fromkeys(("labels", "label", "y", "targets", "target", "classes"), "labels"),
    "groups": "groups",
}
PREFIXES = ("", "test_", "validation_")  # of parts
KINDS = ("images", "labels", "groups")
CHANNELS = (1, 3)  # channels: grey, or red, green and blue
OwnReader = Callable[[str, Path | None, sets.Request], sets.LoadedImages]
DeclaredReader = Callable[[ImageDataset, sets.Request], sets.LoadedImages]


def load_images(
    dataset: str, size: int, data_root: Path | None, device: torch.device
) -> sets.LoadedImages:
    """A set of images by name and the sha256 of its content.

    Images that all have one size of at most 96 pixels a side keep it; the embedded digits are
    enlarged to `size`; others are stored with `stored_size(size)` pixels a side.
    """
    return ADAPTER.read(dataset, data_root, sets.Request(size, data_root, device))


@lru_cache(maxsize=1)
def load_declared(dataset: str, data_root: Path | None, asked: sets.Request) -> sets.LoadedImages:
    about = DATASETS[dataset]
    refuse(dataset, (asked.groups or (), " has no groups: leave --recipe groups out"))
    reader: DeclaredReader = reader_of(__package__, about)
    path = download.local_file(about, data_root) if about.url else None
    with reading(path or dataset, about.again):
        images, digest = reader(about, asked)
    if about.content not in ("", digest):
        place = f" in {path}" * (not about.sha256)  # of others an unpacked folder may be read
        raise UserError(f"the files kept as {dataset}{place} have other content: {about.again}")
    return images, digest


def read_folder(what: str, data_root: Path | None, asked: sets.Request) -> sets.LoadedImages:
    root = own.find_path(what, data_root, Path.is_dir).resolve()
    parts, notes = folder_parts(root, asked.groups)
    return from_files(parts, decode.folder_reader(root), asked, notes)


def read_arrays(path: Path, asked: sets.Request) -> sets.LoadedImages:
    kind = file_kind(path).removeprefix("a zip archive")
    refuse(path, (kind, " is {}, not arrays by name: write it by numpy.savez"))
    with zipfile.ZipFile(path) as archive:
        there = member_names(archive)
        keys = array_keys(path, [name.removesuffix(".npy") for name in there], asked.groups)
        tested, kinds = "test_images" in keys, KINDS[: 3 if asked.groups else 2]
        wanted = {part: [part + kind for kind in kinds] for part in PREFIXES[: 3 if tested else 1]}
        found = {part: names for part, names in wanted.items() if keys.keys() >= {*names}}
        read = {key for pair in found.values() for key in pair}
        arrays = {key: array(archive, name) for key, name in keys.items() if key in read}
    classes, parts = np.unique(arrays["labels"]), sets.PartArrays()
    for part, (images, labels, *groups) in found.items():
        unknown = sorted({*np.unique(arrays[labels]).tolist()} - {*classes.tolist()})
        refuse(path, (part and unknown, ": class {} has no training images"))
        y = torch.from_numpy(np.searchsorted(classes, arrays[labels]).reshape(-1))
        named = [tuple(arrays[key].reshape(-1).astype(str).tolist()) for key in groups]
        pixels = array_pixels(path, arrays, images, labels, *groups)
        parts[part.strip("_") or "train"] = (pixels, y, *named)
    parts = parts if tested else sets.split_held_out(*parts["train"])
    names = [str(label) for label in classes.tolist()]
    check_classes(path, names, parts["train"][1].unique().tolist())
    odd = len({x.shape[1:] for x, *_ in parts.values()}) > 1
    refuse(path, (odd, ": training and test images have different sizes: resize one part"))
    chosen_by = parts.pop("validation", None)
    if chosen_by:  # stands behind the training images
        (x, y, *g), (own_x, own_y, *own_g) = parts["train"], chosen_by
        named = [a + b for a, b in zip(g, own_g, strict=True)]
        parts["train"] = torch.cat([x, own_x]), torch.cat([y, own_y]), *named
    made, digest = sets.on_device(parts, names, asked.device)
    others = [name for key, name in keys.items() if key not in read]
    notes = {"arrays left out": others} if others else {}
    count = len(chosen_by[1]) if chosen_by else 0
    return replace(made, validation=count, drawn=not tested, notes=notes), digest


def load_declared_arrays(about: ImageDataset, asked: sets.Request) -> sets.LoadedImages:
    return read_arrays(download.obtain(about, asked.data_root), asked)


def array_keys(path: Path, names: Sequence[str], groups: str | None = None) -> dict[str, str]:
    """Return the names of the arrays of pictures and classes, and of groups, by what they are.

    >>> array_keys(Path("m.npz"), ["x_train", "y_train", "x_test", "y_test"])["test_labels"]
    'y_test'
    """
    arrays: dict[str, str] = {}
    for name in names:
        own_name = rf"(?<![^_ -]){re.escape(groups or 'groups')}(?![^_ -])"
        words = re.split("[_ -]", re.sub(own_name, "groups", name).lower())
        parts = [part for word in words if (part := own.part_name(word))]
        kinds = [kind for word in words if (kind := ARRAY_WORDS.get(word))]
        known = len(kinds) == 1 and len(parts) + 1 == len(words) <= 2
        part = f"{parts[0]}_" if known and parts and parts != ["train"] else ""
        key = part + kinds[0] if known else name
        refuse(path, (key in arrays, f" has {arrays.get(key)} and {name}: keep one of them"))
        arrays[key] = name
    prefixes = PREFIXES[: 1 + bool({"test_images", "test_labels"} & arrays.keys())]
    wanted = [part + kind for part in prefixes for kind in KINDS[: 3 if groups else 2]]
    lacking = [key for key in wanted if key not in arrays]
    unnamed = any(re.fullmatch(r"arr_\d+", name) for name in names)
    fix = ": give them names, as in numpy.savez(FILE, images=x, labels=y)" * unnamed
    refuse(path, (lacking, f" has no array {{}}: it holds {', '.join(names)}{fix}"))
    return arrays


def array(archive: zipfile.ZipFile, key: str) -> Array:
    """An array of a bounded size, of numbers or texts: nothing is unpickled.

    Texts of pandas are Python objects, which are refused.
    """
    data = BytesIO(member(archive, f"{key}.npy", UNPACKED))
    try:
        return np.lib.format.read_array(data, allow_pickle=False)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        fault = f"{archive.filename}: {key} holds Python objects: save it as .astype(str)"
        raise UserError(fault) from None


def array_pixels(path: Path, arrays: dict[str, Array], key: str, *others: str) -> torch.Tensor:
    """(N, 3, height, width) uint8; grey in all three colours. `others` hold a label of each."""
    images = arrays[key]
    pictured = images.dtype == np.uint8 and images.ndim in (3, 4)
    label_fix = "give one whole number or text an image"
    fix = "give uint8 of shape (N, height, width) or (N, height, width, 3)"
    shapes = ((len(images),), (len(images), 1))
    labels = [(name, arrays[name].dtype, arrays[name].shape) for name in others]
    wrong = [label for label in labels if label[1].kind not in "iubUS" or label[2] not in shapes]
    refuse(
        path,
        (not len(images), f": {key} holds no images"),
        (not pictured, f": {key} is {images.dtype} of shape {images.shape}: {fix}"),
        (wrong, f": its {{}} are {{}} of shape {{}} for {len(images)} images: {label_fix}"),
    )
    if images.ndim == 3:
        images = images[..., None]
    if images.shape[3] in CHANNELS:
        images = images.transpose(0, 3, 1, 2)
    odd = images.shape[1] not in CHANNELS or min(images.shape[2:]) < 8
    refuse(path, (odd, f": {key} has shape {arrays[key].shape}: 1 or 3 colours, 8 pixels"))
    return torch.from_numpy(np.ascontiguousarray(np.repeat(images, 3 // images.shape[1], axis=1)))


def check_classes(where: object, classes: Sequence[str], trained: Collection[object]) -> None:
    single = " has a single class, so nothing can be classified: add images of another class"
    lonely = [label for k, label in enumerate(classes) if k not in trained]
    fault = ": class {} has one image: training and test part need one each"
    refuse(where, (len(classes) < 2, single), (lonely, fault))


def read_saved(what: str, data_root: Path | None, asked: sets.Request) -> sets.LoadedImages:
    (splits, notes), name = saved.saved_parts(what, data_root), f"hf:{what}"
    refuse(name, (asked.groups or (), " takes no groups: save its pictures in folders"))
    content, parts = saved_pictures(name, splits)
    if left := parts.pop("validation", {}):  # which is drawn from train, as for every set
        notes["pictures left out, of the split validation"] = sum(map(len, left.values()))
    trained, *tested = parts.values()
    classes = tuple(trained)
    new = sorted({label for part in tested for label in part} - {*classes})
    refuse(name, (new, ": class {} has no training images"))
    read = [class_files(part, classes) for part in parts.values()]
    train, test = read if tested else split_fifth(read[0])
    check_classes(name, classes, train.labels)
    found = Parts(train, test, classes, drawn=not tested, listed=True)
    try:
        return from_files(found, content.__getitem__, asked, notes)
    except UserError as error:  # which names a picture by its number
        raise UserError(f"{name}: {error}") from None


def saved_pictures(
    name: str, splits: Mapping[str, Any]
) -> tuple[dict[str, bytes], dict[str, dict[str, list[str]]]]:
    from datasets import Image

    features = next(iter(splits.values())).features
    pictures = [column for column, kind in features.items() if isinstance(kind, Image)]
    labels = [column for column in features if ARRAY_WORDS.get(column) == "labels"]
    fault = f" has the columns {', '.join(features)}: give one of pictures and one named label"
    refuse(name, ((len(pictures), len(labels)) != (1, 1), fault))
    content: dict[str, bytes] = {}
    parts: dict[str, dict[str, list[str]]] = {}
    known = getattr(features[labels[0]], "names", None)
    for part, split in splits.items():
        cells, ys = (split.data.column(k).to_pylist() for k in (pictures[0], labels[0]))
        content |= {f"{part}/{k}": cell["bytes"] for k, cell in enumerate(cells)}
        places: dict[Any, list[str]] = {}
        for k, y in enumerate(ys):
            places.setdefault(y, []).append(f"{part}/{k}")
        parts[part] = {known[y] if known else str(y): places[y] for y in sorted(places)}
    elsewhere = [file for file, data in content.items() if not data]
    refuse(name, (elsewhere, " holds no bytes of picture {}: save it anew by save_to_disk"))
    return content, parts


READERS: dict[str, OwnReader] = {
    "folder": read_folder,
    "npz": lambda what, root, asked: read_arrays(own.find_path(what, root), asked),
    "hf": read_saved,
}
ADAPTER = own.Adapter(
    "image", DATASETS, SOURCES, lambda kind, *asked: READERS[kind](*asked), load_declared
)
