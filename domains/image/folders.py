"""Anybody's images: a folder for each class, with or without one for each part above them."""

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from contrastbench.domains.image import decode
from contrastbench.domains.image.files import Part, Parts, from_files
from contrastbench.domains.image.images import ImageSet, held_out
from contrastbench.domains.reading import reading
from contrastbench.losses.errors import UserError

PART_NAMES = ("train", "test", "val")


@lru_cache(maxsize=1)
def load_folder(
    root: Path, size: int, device: torch.device, fingerprint: str, whole: bool
) -> tuple[ImageSet, str]:
    """A user's folder; the last one is kept for the next seed, unless it was changed since."""
    parts, notes = folder_parts(root)
    return from_files(parts, decode.folder_reader(root), notes, size, device, whole)


def find_folder(path: Path, data_root: Path | None) -> Path:
    """The folder of that name, here or in the data root."""
    for candidate in (path, data_root / path if data_root else path):
        if candidate.is_dir():
            return candidate.resolve()
    raise UserError(
        f"no folder {path}" + (f", nor in {data_root}" if data_root else "; its place: --data-root")
    )


def fingerprint(root: Path) -> str:
    """Names, sizes and times of a folder's files, hashed: whether it was changed."""
    digest = hashlib.sha256()
    for name in files_below(root):
        with reading(root / name, decode.REPLACE):  # a link may lead nowhere
            known = (root / name).stat()
        digest.update(f"{name}\0{known.st_size}\0{known.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def files_below(root: Path) -> list[str]:
    """Sorted names of all files in a folder and its folders, hidden ones left out."""
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(folder).relative_to(root)
        names += [(below / name).as_posix() for name in files if not name.startswith(".")]
    return sorted(names)


def folder_parts(root: Path) -> tuple[Parts, dict[str, Any]]:
    """Training and test files of a folder in ImageFolder's layout, and how many other files it has.

    Raises:
        UserError: no classes, an empty one, one that is in the test part alone, or a single one.
    """
    folders = [name for name in PART_NAMES if (root / name).is_dir()]
    if "train" not in folders:
        return one_part(root)
    if len(folders) == 1:
        raise UserError(
            f"{root} has train, but neither test nor val: add one, or give folder:{root / 'train'}"
        )
    train, test = (classes_of(root, name) for name in folders[:2])
    extra = sorted(test.keys() - train.keys())
    if extra:
        raise UserError(
            f"{root / folders[1] / extra[0]}: {root / 'train'} has no such class; move or remove it"
        )
    classes = tuple(sorted(train))
    notes = left_out(root, folders[:2], train, test)
    if len(test) < len(train):
        notes["classes without test images"] = len(train) - len(test)
    return Parts(part(train, classes), part(test, classes), checked(root, classes)), notes


def one_part(root: Path) -> tuple[Parts, dict[str, Any]]:
    """A folder of classes alone: a fifth of each is the test part."""
    files = classes_of(root, ".")
    classes = checked(root, tuple(sorted(files)))
    lonely = [name for name, names in files.items() if len(names) < 2]
    if lonely:
        raise UserError(
            f"{root / lonely[0]} has one image, but training and test part need one each: "
            "add or remove it"
        )
    whole = part(files, classes)
    test = held_out(torch.tensor(whole.labels))
    train, tested = (
        Part(
            tuple(name for name, chosen in zip(whole.names, rows, strict=True) if chosen),
            tuple(label for label, chosen in zip(whole.labels, rows, strict=True) if chosen),
        )
        for rows in ((~test).tolist(), test.tolist())
    )
    return Parts(train, tested, classes), left_out(root, ["."], files)


def checked(root: Path, classes: tuple[str, ...]) -> tuple[str, ...]:
    """Raise unless there are two classes to tell apart."""
    if len(classes) < 2:
        raise UserError(f"{root} has a single class, {classes[0]}: there is nothing to classify")
    return classes


def part(files: dict[str, list[str]], classes: tuple[str, ...]) -> Part:
    """The files of classes, with their numbers."""
    pairs = [
        (name, number) for number, label in enumerate(classes) for name in files.get(label, [])
    ]
    return Part(tuple(name for name, _ in pairs), tuple(number for _, number in pairs))


def classes_of(root: Path, name: str) -> dict[str, list[str]]:
    """Image files of each class folder of a part, by names from the root."""
    parent = root / name
    folders = sorted(
        path for path in parent.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    if not folders:
        fix = "put the images of each class into a folder of that name"
        raise UserError(f"{parent.resolve()} has no class folders: {fix}")
    return {
        folder.name: images_of(root, (Path(name) / folder.name).as_posix()) for folder in folders
    }


def images_of(root: Path, folder: str) -> list[str]:
    """Image files of a class folder, by names from the root."""
    images = [
        name for name in files_below(root / folder) if Path(name).suffix.lower() in decode.SUFFIXES
    ]
    if not images:
        raise UserError(f"class folder {root / folder} has no images: fill or remove it")
    return [f"{folder}/{name}" for name in images]


def left_out(root: Path, parts: Sequence[str], *read: dict[str, list[str]]) -> dict[str, Any]:
    """How many files of the parts are no images by their names."""
    there = sum(len(files_below(root / name)) for name in parts)
    others = there - sum(len(names) for files in read for names in files.values())
    return {"files left out, no images by their names": others} if others else {}
