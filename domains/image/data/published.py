"""Declared sets: ImageNet's kin, those of metric learning, tiles, and binaries of CIFAR and STL-10.

In metric learning the classes of the test images are not those of the training images. Classes
stand in the order of their names or numbers; the first half trains, the second is tested.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from contrastbench.domains import download
from contrastbench.domains.image.data import decode, matlab
from contrastbench.domains.image.data import images as sets
from contrastbench.domains.image.data.archives import archive, members, read_members
from contrastbench.domains.image.data.datasets import IMAGENET_100, ImageDataset
from contrastbench.domains.image.data.decode import Kept
from contrastbench.domains.image.data.images import LoadedImages, Part, PartArrays, Parts, Request
from contrastbench.domains.image.data.own import images_of
from contrastbench.domains.reading import reading, refuse
from contrastbench.errors import UserError

ROWS = 3  # of tiles in a photograph, and columns


def load_tiny(about: ImageDataset, asked: Request) -> LoadedImages:
    """Tiny-ImageNet from its zip or its folder; the test part is the published validation part."""
    path, kept, parts = tiny_files(about, asked.data_root)
    sets.check_sizes(about, parts, path)
    return sets.from_files(parts, kept.read, asked)


def load_tenth(about: ImageDataset, asked: Request) -> LoadedImages:
    """Every tenth class of Tiny-ImageNet's training part, at the size of views.

    Half of what is read of each class is tested: the published test part is too small for that.
    """
    path, kept, whole = tiny_files(about, asked.data_root)
    files_of = sets.by_label((name.split("/")[1], name) for name in whole.train.names)
    named = {label: files_of.get(label, []) for label in whole.classes[::10]}
    parts = first_files(named, about.sizes[1] // about.sizes[0])
    sets.check_sizes(about, parts, path)
    return sets.from_files(parts, kept.read, asked, largest=0)


def first_files(named: sets.FilesByClass, count: int) -> Parts:
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
    return sets.photographs(about, Parts.by_class(*found), root, decode.folder_reader(root), asked)


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
    return sets.photographs(about, LAYOUTS[about.layout](kept), path, kept.read, asked)


def by_folder(kept: Kept) -> Parts:
    """A folder for each class, as CUB has them in a folder `images`."""
    paths = [path for path in decode.picture_paths(kept.names) if len(path.parts) > 1]
    return class_halves(sets.by_label((path.parent.name, str(path)) for path in paths))


def by_alphabets(kept: Kept) -> Parts:
    """Omniglot's: a folder of alphabets for each part, and in them one for each character."""
    paths = decode.picture_paths(kept.names)

    def characters(part: str) -> sets.FilesByClass:
        own = [path for path in paths if path.parts[0] == part]
        return sets.by_label(("/".join(path.parts[1:-1]), str(path)) for path in own)

    return Parts.by_class(characters("images_background"), characters("images_evaluation"))


def by_annotations(kept: Kept) -> Parts:
    """Cars196's: `cars_annos.mat` of its authors names each image's file and class."""
    said = sorted(matlab.annotations(kept.read("cars_annos.mat")))
    return replace(class_halves(sets.by_label((f"{k:03}", file) for k, file in said)), listed=True)


def by_lists(kept: Kept) -> Parts:
    """SOP's: two lists with lines of image number, class, kind of product and file."""

    def listed(part: str) -> sets.FilesByClass:
        lines = kept.read(f"Ebay_{part}.txt").decode().splitlines()[1:]
        return sets.by_label((label, name) for _, label, _, name in map(str.split, lines))

    return replace(Parts.by_class(listed("train"), listed("test")), listed=True)


def class_halves(classes: sets.FilesByClass) -> Parts:
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
    found = sets.by_label((class_of(name), name) for name in kept.names)
    named = {label: found.get(label, []) for label in about.classes}
    classes, train, _ = about.sizes
    parts = first_files(named, train // ROWS**2 // classes)
    sets.check_sizes(about, parts, path, ROWS**2)
    names = parts.train.names + parts.test.names
    headers = [decode.image_header(n, kept.read(n)) for n in names]
    digest = sets.content_of_files(parts, names, headers)
    both = {"train": parts.train, "test": parts.test}
    samples = {name: tiles_of(part, kept, asked.size) for name, part in both.items()}
    return sets.on_device(samples, parts.classes, asked.device)[0], digest


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


class Binary(NamedTuple):
    """The files of a binary version."""

    train: tuple[str, ...]
    test: str
    words: str
    labels: int  # of each record; the last one is the class


BINARIES = {  # by their folders
    "cifar-10-batches-bin": Binary(
        tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin", "batches.meta.txt", 1
    ),
    "cifar-100-binary": Binary(("train.bin",), "test.bin", "fine_label_names.txt", 2),
}


def load_cifar(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load the first images of each class, as many as the declared sizes say: all, or a few.

    However CIFAR is kept, its images stand in one order, by class and then by the sha256 of their
    pixels: the same content gives the same numbers.
    """
    samples, classes = ordered_parts(about, asked.data_root)
    number, *counts = about.sizes
    first = PartArrays()
    for (part, (pixels, labels)), count in zip(samples.items(), counts, strict=True):
        place = torch.arange(len(labels)) - torch.searchsorted(labels, labels)  # in its class
        kept = place < count // number
        first[part] = pixels[kept], labels[kept]
    return sets.on_device(first, classes, asked.device)


def ordered_parts(about: ImageDataset, data_root: Path | None) -> tuple[PartArrays, Sequence[str]]:
    places = [data_root / name for name in about.places] if data_root else []
    path = next((path for path in places if path.is_file() or (path / "train").is_dir()), None)
    kept = decode.opened(path) if path else None
    samples, classes = from_pictures(kept) if kept else from_binary(about, data_root)
    return {part: canonical_order(*samples[part]) for part in ("train", "test")}, classes


def load_few_shot(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load all samples anew: those of the declared classes are tested, the others train."""
    samples, classes = from_binary(about, asked.data_root)
    pixels, labels = (torch.cat(parts) for parts in zip(*samples.values(), strict=True))
    with reading(about.name, about.again):
        numbers = [classes.index(word) for word in about.classes]
    tested = torch.isin(labels, torch.tensor(numbers))
    rows = {"train": ~tested, "test": tested}
    parts = {part: canonical_order(pixels[some], labels[some]) for part, some in rows.items()}
    return sets.on_device(parts, classes, asked.device)


def canonical_order(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    hashes = [sha256(image.numpy().data).digest() for image in pixels.contiguous()]
    keys = list(zip(labels.tolist(), hashes, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return pixels[order], labels[order]


def from_binary(about: ImageDataset, data_root: Path | None) -> tuple[PartArrays, Sequence[str]]:
    """The binary version, found or downloaded: no pickles."""
    kept = BINARIES[about.layout]
    names = (*kept.train, kept.test, kept.words)
    raw = read_members(about, about.layout, data_root, names)
    with reading(about.name, about.again):
        train = binary_records(b"".join(raw[file] for file in kept.train), 50_000, kept.labels)
        samples = {"train": train, "test": binary_records(raw[kept.test], 10_000, kept.labels)}
        return samples, raw[kept.words].decode().split()


def binary_records(raw: bytes, count: int, labels: int) -> tuple[Tensor, Tensor]:
    table = shaped_bytes(raw, (count, labels + 3 * 32 * 32))
    classes = labels_below(table[:, labels - 1].long(), 10**labels)
    return table[:, labels:].reshape(-1, 3, 32, 32), classes


def from_pictures(kept: decode.Kept) -> tuple[PartArrays, Sequence[str]]:
    """Read pictures whose folders name their part and class, PART/CLASS/FILE."""
    paths = [path for path in decode.picture_paths(kept.names) if len(path.parts) > 2]
    classes = sorted({path.parent.name for path in paths})
    samples = {}
    for part in ("train", "test"):
        mine = [path for path in paths if path.parts[-3] == part]
        labels = torch.tensor([classes.index(path.parent.name) for path in mine])
        samples[part] = (picture_pixels([str(path) for path in mine], kept.read), labels)
    return samples, classes


def picture_pixels(names: Sequence[str], read: decode.ReadBytes) -> Tensor:
    """(N, 3, 32, 32) uint8 of all pictures."""

    def decoded(name: str) -> Tensor:
        image = decode.decode(name, read(name), None)
        if image.shape != (3, 32, 32):
            raise UserError(f"{name} does not have 32 x 32 pixels: {decode.REPLACE}")
        return image

    pictures = list(decode.in_threads(decoded, names, "reading pictures"))
    return torch.stack(pictures) if pictures else torch.empty(0, 3, 32, 32, dtype=torch.uint8)


def load_stl(about: ImageDataset, asked: Request) -> LoadedImages:
    classes, train, test = about.sizes
    counts = {"train": train, "test": test, "unlabeled": about.unlabelled}
    files = [f"{part}_{kind}.bin" for part in counts for kind in "Xy"]
    files.remove("unlabeled_y.bin")
    raw = read_members(about, "stl10_binary", asked.data_root, (*files, "class_names.txt"))
    parts = {}
    with reading(about.name, about.again):
        for part, count in counts.items():
            columns = shaped_bytes(raw.pop(f"{part}_X.bin"), (count, 3, 96, 96))
            labels = shaped_bytes(raw.get(f"{part}_y.bin", bytes(count)), (count,)).long() - 1
            parts[part] = columns.mT.contiguous(), labels_below(labels, classes)
        return sets.on_device(parts, raw["class_names.txt"].decode().split(), asked.device)


def labels_below(labels: Tensor, classes: int) -> Tensor:
    if labels.max() >= classes:
        raise ValueError(f"class {int(labels.max())} of {classes}")
    return labels


def shaped_bytes(raw: bytes, shape: tuple[int, ...]) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(shape)
