"""The sets that encoders are transferred to, as torchvision reads them from a data root.

Their parts and metrics are those of RényiCL's Table 11 (Lee and Shin 2022, appendix B), but VOC2007
has its authors' parts. No sha256 of their archives is known to us, so none is downloaded.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from torchvision import datasets

from contrastbench.domains import download
from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data import images as sets
from contrastbench.domains.image.data.datasets import CALTECH_FITTED, ImageDataset
from contrastbench.domains.image.data.images import Label, LoadedImages, Parts, Request
from contrastbench.domains.reading import reading

LabelledFiles = list[tuple[str, Label]]
# the names of classes, and the files to train, to validate (none: a share is drawn) and to test
SetFiles = tuple[Sequence[str], LabelledFiles, LabelledFiles, LabelledFiles]


def pets(root: Path) -> SetFiles:
    """Oxford's pets; their reader takes no loader."""
    parts = [datasets.OxfordIIITPet(root, split=name) for name in ("trainval", "test")]
    train, test = (list(zip(map(str, kept._images), kept._labels, strict=True)) for kept in parts)
    return parts[0].classes, train, [], test


def sun(root: Path) -> SetFiles:
    """The first of SUN397's ten partitions, whose lists are another archive of its authors."""
    scenes = datasets.SUN397(root, loader=str)
    label = dict(scenes[k] for k in range(len(scenes)))
    parts = [
        [str(root / "SUN397" / line[1:]) for line in text_lines(root / f"SUN397/{part}_01.txt")]
        for part in ("Training", "Testing")
    ]
    train, test = ([(name, label[name]) for name in names] for names in parts)
    return scenes.classes, train, [], test


def caltech(root: Path) -> SetFiles:
    """Caltech-101 without its background: thirty images of each class, all others are tested.

    Which thirty is not said; here the same for every seed.
    """
    kept = datasets.Caltech101(root)
    folder, rng = Path(kept.root, "101_ObjectCategories"), np.random.default_rng(0)
    classes, train, test = kept.categories, LabelledFiles(), LabelledFiles()
    for label, name in enumerate(classes):
        numbers = [k for k, y in zip(kept.index, kept.y, strict=True) if y == label]
        files = [(str(folder / name / f"image_{k:04d}.jpg"), label) for k in numbers]
        drawn = [files[k] for k in rng.permutation(len(files))]
        train += drawn[:CALTECH_FITTED]
        test += drawn[CALTECH_FITTED:]
    return classes, train, [], test


def voc(root: Path) -> SetFiles:
    """VOC2007: 1 of a class, -1 not, 0 where only what is hard to see is of it."""
    folder = root / "VOCdevkit/VOC2007/ImageSets/Main"
    classes = sorted({path.name.rpartition("_")[0] for path in folder.glob("*_trainval.txt")})
    parts: list[LabelledFiles] = []
    for part in ("train", "val", "test"):
        files = datasets.VOCDetection(root, "2007", part).images
        columns = [
            [int(line.split()[1]) for line in text_lines(folder / f"{name}_{part}.txt")]
            for name in classes
        ]
        parts.append(list(zip(files, zip(*columns, strict=True), strict=True)))
    train, validation, test = parts
    return classes, train, validation, test


def text_lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


# that take no loader, or whose parts are elsewhere
FOLDER_READERS: dict[str, Callable[[Path], SetFiles]] = {
    "OxfordIIITPet": pets,
    "SUN397": sun,
    "Caltech101": caltech,
    "VOCDetection": voc,
}


def files_of(about: ImageDataset, root: Path) -> SetFiles:
    if about.layout in FOLDER_READERS:
        return FOLDER_READERS[about.layout](root)
    part = partial(getattr(datasets, about.layout), root, loader=str)
    parts = [part(split=name) for name in ("train", "test")]
    held_out = part(split=about.validation_part) if about.validation_part else ()
    train, test, own = ([one[k] for k in range(len(one))] for one in (*parts, held_out))
    return parts[0].classes, train, own, test


def load_transfer(about: ImageDataset, asked: Request) -> LoadedImages:
    """A declared set; the last of its training images are those that validate, if they are told."""
    path = download.obtain(about, asked.data_root)
    root = path.parent
    with reading(path, about.again, "is not as torchvision's reader wants it"):
        classes, fitted, validation, tested = files_of(about, root)
        train, test = (
            sets.part_of(
                [(Path(name).relative_to(root).as_posix(), label) for name, label in files]
            )
            for files in (fitted + validation, tested)
        )
    parts = Parts(train, test, tuple(classes))
    images, digest = sets.photographs(about, parts, path, decode.folder_reader(root), asked)
    labelled = sha256(f"{digest}{train.labels}{test.labels}".encode()).hexdigest()
    return replace(images, validation=len(validation)), labelled
