"""Declared sets of photographs: ImageNet's kin, those of metric learning, and tiles.

In metric learning the classes of the test images are not those of the training images. Classes
stand in the order of their names or numbers; the first half trains, the second is tested.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from contrastbench.domains import download
from contrastbench.domains.image.data import decode, files, matlab
from contrastbench.domains.image.data.archives import archive, members
from contrastbench.domains.image.data.datasets import IMAGENET_100, ImageDataset
from contrastbench.domains.image.data.decode import Kept
from contrastbench.domains.image.data.files import FilesByClass, Part, Parts, by_label, photographs
from contrastbench.domains.image.data.folders import images_of
from contrastbench.domains.image.data.images import LoadedImages, Request, on_device
from contrastbench.domains.reading import reading, refuse
from contrastbench.errors import UserError

ROWS = 3  # of tiles in a photograph, and columns


def load_tiny(about: ImageDataset, asked: Request) -> LoadedImages:
    """Tiny-ImageNet from its zip or its folder; the test part is the published validation part."""
    path, kept, parts = tiny_files(about, asked.data_root)
    files.check_sizes(about, parts, path)
    return files.from_files(parts, kept.read, asked)


def load_tenth(about: ImageDataset, asked: Request) -> LoadedImages:
    """Every tenth class of Tiny-ImageNet's training part, at the size of views.

    Half of what is read of each class is tested: the published test part is too small for that.
    """
    path, kept, whole = tiny_files(about, asked.data_root)
    files_of = by_label((name.split("/")[1], name) for name in whole.train.names)
    named = {label: files_of.get(label, []) for label in whole.classes[::10]}
    parts = first_files(named, about.sizes[1] // about.sizes[0])
    files.check_sizes(about, parts, path)
    return files.from_files(parts, kept.read, asked, largest=0)


def first_files(named: FilesByClass, count: int) -> Parts:
    halves = (slice(count), slice(count, 2 * count))
    return Parts.by_class(*({k: names[half] for k, names in named.items()} for half in halves))


def tiny_files(about: ImageDataset, root: Path | None) -> tuple[Path, decode.Kept, Parts]:
    folder = root / "tiny-imagenet-200" if root else None
    path = folder if folder and folder.is_dir() else archive(about, root)
    kept = decode.opened(path, about.again, "tiny-imagenet-200/")
    with reading(path, about.again):
        return path, kept, tiny_parts(kept)


def tiny_parts(kept: decode.Kept) -> Parts:
    images = sorted(n for n in kept.names if n.startswith("train/") and n.endswith(".JPEG"))
    classes = tuple(sorted(kept.read("wnids.txt").decode().split()))
    lines = kept.read("val/val_annotations.txt").decode().splitlines()
    named, labels = zip(*(line.split("\t")[:2] for line in lines), strict=True)
    train = Part(tuple(images), class_numbers(classes, [n.split("/")[1] for n in images]))
    test = Part(tuple(f"val/images/{file}" for file in named), class_numbers(classes, labels))
    return Parts(train, test, classes, listed=True)


def class_numbers(classes: Sequence[str], labels: Iterable[str]) -> tuple[int, ...]:
    number = {label: k for k, label in enumerate(classes)}
    try:
        return tuple(number[label] for label in labels)
    except KeyError as error:
        raise ValueError(f"unknown class {error}") from None


def load_imagenet(about: ImageDataset, asked: Request) -> LoadedImages:
    root = imagenet_folder(about, asked.data_root)
    there = (path.name for path in (root / "train").iterdir() if path.is_dir())
    classes = tuple(sorted(about.classes or there))  # more may stand beside those of ImageNet-100
    found = []
    for split in ("train", "val"):
        missing = [label for label in classes if not (root / split / label).is_dir()]
        which = f"one of {about.name}'s {len(classes)} classes"
        refuse(root / split, (missing, f" has no folder {{}}, {which}"))
        found.append({label: images_of(root, f"{split}/{label}") for label in classes})
    return photographs(about, Parts.by_class(*found), root, decode.folder_reader(root), asked)


def imagenet_folder(about: ImageDataset, data_root: Path | None) -> Path:
    parts = ("imagenet-100", "imagenet100") if about.classes else ()
    for folder in (*parts, "imagenet", "ImageNet", "ILSVRC2012", "."):
        if data_root and (data_root / folder / "train" / IMAGENET_100[0]).is_dir():
            return data_root / folder
    absent = f"{data_root} has no imagenet/train/{IMAGENET_100[0]}"
    where = absent if data_root else "no data root is given"
    fix = f"get ImageNet from {about.url} and name the folder of its train and val: --data-root"
    raise UserError(f"{where}: {fix} (or CONTRASTBENCH_DATA)")


def load_disjoint(about: ImageDataset, asked: Request) -> LoadedImages:
    path = download.obtain(about, asked.data_root)
    kept = decode.opened(path, about.again)
    return photographs(about, LAYOUTS[about.layout](kept), path, kept.read, asked)


def by_folder(kept: Kept) -> Parts:
    """A folder for each class, as CUB has them in a folder `images`."""
    paths = [path for path in decode.picture_paths(kept.names) if len(path.parts) > 1]
    return class_halves(by_label((path.parent.name, str(path)) for path in paths))


def by_alphabets(kept: Kept) -> Parts:
    """Omniglot's: a folder of alphabets for each part, and in them one for each character."""
    train, test = (
        by_label(("/".join(path.parts[1:-1]), str(path)) for path in paths if path.parts[0] == part)
        for paths in [decode.picture_paths(kept.names)]
        for part in ("images_background", "images_evaluation")
    )
    return Parts.by_class(train, test)


def by_annotations(kept: Kept) -> Parts:
    """Cars196's: `cars_annos.mat` of its authors names each image's file and class."""
    said = sorted(matlab.annotations(kept.read("cars_annos.mat")))
    return replace(class_halves(by_label((f"{k:03}", file) for k, file in said)), listed=True)


def by_lists(kept: Kept) -> Parts:
    """SOP's: two lists with lines of image number, class, kind of product and file."""

    def listed(part: str) -> FilesByClass:
        lines = kept.read(f"Ebay_{part}.txt").decode().splitlines()[1:]
        return by_label((label, name) for _, label, _, name in map(str.split, lines))

    return replace(Parts.by_class(listed("train"), listed("test")), listed=True)


def class_halves(classes: FilesByClass) -> Parts:
    items = list(classes.items())
    half = len(items) // 2
    return Parts.by_class(dict(items[:half]), dict(items[half:]))


LAYOUTS: dict[str, Callable[[Kept], Parts]] = {
    "folders": by_folder,
    "alphabets": by_alphabets,
    "annotations": by_annotations,
    "lists": by_lists,
}


def load_tiles(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load the tiles of the declared classes, whose photographs are named CLASS_NUMBER.jpg.

    The digest is of the photographs' bytes and names.
    """
    path = download.obtain(about, asked.data_root)
    kept = named_photographs(path, about.classes)
    found = by_label((class_of(name), name) for name in kept.names)
    named = {label: found.get(label, []) for label in about.classes}
    classes, train, _ = about.sizes
    parts = first_files(named, train // ROWS**2 // classes)
    files.check_sizes(about, parts, path, ROWS**2)
    names = parts.train.names + parts.test.names
    headers = [decode.image_header(n, kept.read(n)) for n in names]
    digest = files.content_of_files(parts, names, headers)
    both = {"train": parts.train, "test": parts.test}
    samples = {name: tiles_of(part, kept, asked.size) for name, part in both.items()}
    return on_device(samples, parts.classes, asked.device)[0], digest


def class_of(name: str) -> str:
    return name.rpartition("_")[0]


def named_photographs(path: Path, classes: tuple[str, ...]) -> Kept:
    if path.is_dir():
        kept = decode.opened(path)
        names = [place.name for place in decode.picture_paths(kept.names)]
        return Kept(names, lambda name: kept.read(f"{class_of(name)}/{name}"))
    packed = dict(members(path, lambda member: member.parent.name in classes))
    return Kept(sorted(packed), packed.__getitem__)


def tiles_of(part: Part, kept: Kept, side: int) -> tuple[Tensor, Tensor]:
    """(N, 3, side, side) uint8 and the classes of the tiles of all photographs of a part."""

    def tiles(name: str) -> Tensor:
        data = kept.read(name)
        header = decode.image_header(name, data)
        step = min(header.width, header.height) // ROWS
        top, left = ((length - ROWS * step) // 2 for length in (header.height, header.width))
        boxes = [
            (top + row * step, left + column * step, step, step)
            for row in range(ROWS)
            for column in range(ROWS)
        ]
        return torch.stack(decode.crops(name, data, boxes, [side] * ROWS**2))

    pixels = torch.cat(list(decode.in_threads(tiles, part.names, "cutting tiles")))
    return pixels, torch.tensor(part.labels).repeat_interleave(ROWS**2)
