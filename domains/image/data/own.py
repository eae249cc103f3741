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
from contrastbench.domains.image.data.images import Part, Parts, class_files, from_files, held_out
from contrastbench.domains.own import files_below, part_name
from contrastbench.domains.reading import UNPACKED, file_kind, member, member_names, reading, refuse
from contrastbench.domains.samples import Array, Counted
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


def folder_parts(root: Path, groups: str | None = None) -> tuple[Parts, dict[str, Any]]:
    folders = part_folders(root)
    if "train" not in folders:
        return one_part(root, groups)
    trained = folders.pop("train")
    fix = f"add one, or give folder:{root / trained}"
    refuse(root, (not folders, f" has {trained}, but neither test nor val: {fix}"))
    tested = folders.pop("test", None) or folders.pop("validation")
    train, test = classes_of(root, trained), classes_of(root, tested)
    extra = [root / tested / name for name in sorted(test.keys() - train.keys())]
    refuse("", (extra, f"{{}}: {root / trained} has no such class; move or remove it"))
    classes = tuple(sorted(train))
    notes = left_out(root, [trained, tested], train, test)
    if part_name(tested) == "validation":
        notes["folder of the test images, as none is named test"] = tested
    for name in folders.values():  # the validation part is drawn from train, as for every set
        notes[f"files left out, in {name}"] = len(files_below(root / name))
    if len(test) < len(train):
        notes["classes without test images"] = len(train) - len(test)
    check_folders(root, classes)
    both = (grouped(root, class_files(part, classes), groups, 2) for part in (train, test))
    return Parts(next(both), next(both), classes), notes


def grouped(root: Path, part: Part, pattern: str | None, depth: int) -> Part:
    """Return files with their groups: what a pattern, or its first bracket, finds in each name.

    The folders above, down to the depth, are no part of a name.
    """
    if pattern is None:
        return part
    with reading(f"groups={pattern}", "write one such as [^_]+", "is no regular expression"):
        found = {n: re.search(pattern, "/".join(Path(n).parts[depth:])) for n in part.names}
    without = [name for name, match in found.items() if not match]
    refuse(root, (without, f": groups={pattern} is not in the name of {{}}: give another pattern"))
    return replace(part, groups=tuple(m[min(1, m.re.groups)] or "" for m in found.values() if m))


def part_folders(root: Path) -> dict[str, str]:
    folders = sorted(path.name for path in root.iterdir() if path.is_dir())
    named = [(part, name) for name in folders if (part := part_name(name))]
    parts = dict(named)
    names = ", ".join(name for _, name in named)
    untrained = bool(named) and "train" not in parts and len(named) == len(folders)
    refuse(
        root,
        (len(parts) < len(named), f" has {names}: keep one folder of each part"),
        (untrained, f" has {', '.join(parts.values())} and no train: name one folder so"),
    )
    return parts


def one_part(root: Path, groups: str | None) -> tuple[Parts, dict[str, Any]]:
    """A folder of classes alone: a fifth of each is the test part."""
    files = classes_of(root, ".")
    classes = tuple(sorted(files))
    check_folders(root, classes)
    for folder in map(root.joinpath, classes):
        parts = sorted(x.name for x in folder.iterdir() if x.is_dir() and part_name(x.name))
        fix = " in a class: put the folders of parts above those of classes"
        refuse(folder, (", ".join(parts), f" has {{}}{fix}"))
    check_one_level(root, files)
    lonely = [root / name for name, names in files.items() if len(names) < 2]
    fix = "but training and test part need one each: add or remove it"
    refuse("", (lonely, f"{{}} has one image, {fix}"))
    train, test = split_fifth(grouped(root, class_files(files, classes), groups, 1))
    return Parts(train, test, classes, drawn=True), left_out(root, ["."], files)


def check_one_level(root: Path, files: dict[str, list[str]]) -> None:
    """Raise where all folders have folders of the same names, so that either may be the classes."""
    inner, *others = ({Path(name).parts[1:-1] for name in some} for some in files.values())
    nested = len(inner) > 1 and all(inner) and all(other == inner for other in others)
    names = f"{', '.join(files)} classes, or {', '.join(map('/'.join, sorted(inner)))} in each"
    refuse(root, (nested, f": are {names}: leave one level of folders"))


def split_fifth(whole: Part) -> tuple[Part, Part]:
    tested = held_out(torch.tensor(whole.labels), whole.groups)
    train, test = ((~tested).nonzero()[:, 0].tolist(), tested.nonzero()[:, 0].tolist())
    return whole.select(train), whole.select(test)


def check_folders(root: Path, classes: tuple[str, ...]) -> None:
    if len(classes) < 2:
        only = root / classes[0]
        inside = part_folders(only) if only.is_dir() else {}
        deeper = only.is_dir() and any(map(Path.is_dir, only.iterdir()))
        fix = "add a folder with another class"
        fix += f", or give folder:{only} for the folders in it" * deeper
        refuse(
            root,
            ("train" in inside, f" holds one folder with parts: give folder:{only}"),
            (True, f" has a single class, {classes[0]}: {fix}"),
        )


def classes_of(root: Path, name: str) -> dict[str, list[str]]:
    parent = root / name
    there = (path for path in parent.iterdir() if path.is_dir())
    folders = sorted(path for path in there if not path.name.startswith("."))
    fix = "put the images of each class into a folder of that name"
    refuse(parent.resolve(), (not folders, f" has no class folders: {fix}"))
    return {x.name: images_of(root, (Path(name) / x.name).as_posix()) for x in folders}


def images_of(root: Path, folder: str) -> list[str]:
    """Return the names of the image files in a folder of the root, and in the folders in it."""
    there = files_below(root / folder)
    images = [name for name in there if Path(name).suffix.lower() in decode.IMAGE_SUFFIXES]
    fix = f", but files such as {there[0]}: save them as PNG" if there else ": fill or remove it"
    refuse(f"folder {root / folder}", (not images, f" has no images{fix}"))
    return [(Path(folder) / name).as_posix() for name in images]


def left_out(root: Path, parts: Sequence[str], *read: dict[str, list[str]]) -> dict[str, Any]:
    used = {name for files in read for names in files.values() for name in names}
    there = [Path(part, name).as_posix() for part in parts for name in files_below(root / part)]
    others = [name for name in there if name not in used]
    note = "files left out, no images of a class"
    return {note: Counted.of(others)} if others else {}


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
        names = [name.removesuffix(".npy") for name in member_names(archive)]
        keys = array_keys(path, names, asked.groups)
        tested, kinds = "test_images" in keys, KINDS[: 3 if asked.groups else 2]
        wanted = {part: [part + kind for kind in kinds] for part in PREFIXES[: 3 if tested else 1]}
        found = {part: some for part, some in wanted.items() if keys.keys() >= {*some}}
        arrays = {key: array(archive, keys[key]) for some in found.values() for key in some}
    classes = np.unique(arrays["labels"])
    parts: sets.PartArrays = {
        part.strip("_") or "train": array_part(path, arrays, classes, *some)
        for part, some in found.items()
    }
    parts = parts if tested else sets.split_held_out(*parts["train"])
    check_classes(path, [*map(str, classes.tolist())], parts["train"][1].unique().tolist())
    odd = len({x.shape[1:] for x, *_ in parts.values()}) > 1
    refuse(path, (odd, ": training and test images have different sizes: resize one part"))
    chosen_by = parts.pop("validation", None)
    if chosen_by:  # stands behind the training images
        (x, y, *g), (own_x, own_y, *own_g) = parts["train"], chosen_by
        named = [a + b for a, b in zip(g, own_g, strict=True)]
        parts["train"] = torch.cat([x, own_x]), torch.cat([y, own_y]), *named
    made, digest = sets.on_device(parts, map(str, classes.tolist()), asked.device)
    others = [name for key, name in keys.items() if key not in arrays]
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
        made = np.lib.format.read_array(data, allow_pickle=False)
        return np.char.decode(made, "utf-8") if made.dtype.kind == "S" else made
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        fault = f"{archive.filename}: {key} holds Python objects: save it as .astype(str)"
        raise UserError(fault) from None


def array_part(
    path: Path, arrays: dict[str, Array], classes: Array, images: str, labels: str, *groups: str
) -> tuple[Any, ...]:
    pixels = array_pixels(path, arrays, images, labels, *groups)  # first: a label may be no number
    unknown = sorted({*np.unique(arrays[labels]).tolist()} - {*classes.tolist()})
    refuse(path, (unknown, ": class {} has no training images"))
    y = torch.from_numpy(np.searchsorted(classes, arrays[labels]).reshape(-1))
    return pixels, y, *(tuple(arrays[key].reshape(-1).astype(str).tolist()) for key in groups)


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
