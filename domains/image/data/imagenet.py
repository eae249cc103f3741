"""Tiny-ImageNet, ImageNet-100 and ImageNet, read from their files."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.archives import archive
from contrastbench.domains.image.data.datasets import IMAGENET_100, ImageDataset
from contrastbench.domains.image.data.files import Part, Parts, check_sizes, from_files, photographs
from contrastbench.domains.image.data.folders import class_files, first_files, images_of
from contrastbench.domains.image.data.images import LoadedImages, Request
from contrastbench.domains.reading import reading, refuse
from contrastbench.errors import UserError


def load_tiny(about: ImageDataset, asked: Request) -> LoadedImages:
    """Tiny-ImageNet from its zip or its folder; the test part is the published validation part."""
    path, kept, parts = tiny_files(about, asked.data_root)
    check_sizes(about, parts, path)
    return from_files(parts, kept.read, asked)


def load_tenth(about: ImageDataset, asked: Request) -> LoadedImages:
    """Every tenth class of Tiny-ImageNet's training part, at the size of views.

    Half of what is read of each class is tested: the published test part is too small for that.
    """
    path, kept, whole = tiny_files(about, asked.data_root)
    files = {
        label: [name for name in whole.train.names if name.split("/")[1] == label]
        for label in whole.classes[::10]
    }
    parts = first_files(files, about.sizes[1] // about.sizes[0])
    check_sizes(about, parts, path)
    return from_files(parts, kept.read, asked, largest=0)


def tiny_files(about: ImageDataset, root: Path | None) -> tuple[Path, decode.Kept, Parts]:
    """Return where Tiny-ImageNet is, its files, and its parts."""
    folder = root / "tiny-imagenet-200" if root else None
    path = folder if folder and folder.is_dir() else archive(about, root)
    kept = decode.opened(path, about.again, "tiny-imagenet-200/")
    with reading(path, about.again):
        return path, kept, tiny_parts(kept)


def tiny_parts(kept: decode.Kept) -> Parts:
    """Tiny-ImageNet's files: training images in class folders, validation images in a list."""
    images = sorted(n for n in kept.names if n.startswith("train/") and n.endswith(".JPEG"))
    classes = tuple(sorted(kept.read("wnids.txt").decode().split()))
    lines = kept.read("val/val_annotations.txt").decode().splitlines()
    files, labels = zip(*(line.split("\t")[:2] for line in lines), strict=True)
    train = Part(tuple(images), class_numbers(classes, [n.split("/")[1] for n in images]))
    test = Part(tuple(f"val/images/{file}" for file in files), class_numbers(classes, labels))
    return Parts(train, test, classes, listed=True)


def class_numbers(classes: Sequence[str], labels: Iterable[str]) -> tuple[int, ...]:
    """Return where the labels stand among the classes."""
    number = {label: k for k, label in enumerate(classes)}
    try:
        return tuple(number[label] for label in labels)
    except KeyError as error:
        raise ValueError(f"unknown class {error}") from None


def load_imagenet(about: ImageDataset, asked: Request) -> LoadedImages:
    """ImageNet, or those of its classes that are declared, from its train and val folders."""
    root = imagenet_folder(about, asked.data_root)
    there = (path.name for path in (root / "train").iterdir() if path.is_dir())
    classes = tuple(sorted(about.classes or there))  # more may stand beside those of ImageNet-100
    files = []
    for split in ("train", "val"):
        missing = [label for label in classes if not (root / split / label).is_dir()]
        which = f"one of {about.name}'s {len(classes)} classes"
        refuse(root / split, (missing, f" has no folder {{}}, {which}"))
        files.append({label: images_of(root, f"{split}/{label}") for label in classes})
    train, test = (class_files(images, classes) for images in files)
    return photographs(about, Parts(train, test, classes), root, decode.folder_reader(root), asked)


def imagenet_folder(about: ImageDataset, data_root: Path | None) -> Path:
    """The folder in the data root that holds ImageNet's train and val folders."""
    parts = ("imagenet-100", "imagenet100") if about.classes else ()
    for folder in (*parts, "imagenet", "ImageNet", "ILSVRC2012", "."):
        if data_root and (data_root / folder / "train" / IMAGENET_100[0]).is_dir():
            return data_root / folder
    absent = f"{data_root} has no imagenet/train/{IMAGENET_100[0]}"
    where = absent if data_root else "no data root is given"
    fix = f"get ImageNet from {about.url} and name the folder of its train and val: --data-root"
    raise UserError(f"{where}: {fix} (or CONTRASTBENCH_DATA)")
