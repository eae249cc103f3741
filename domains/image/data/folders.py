"""Anybody's images: a folder for each class, with or without one for each part above them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.files import Part, Parts, class_files
from contrastbench.domains.image.data.images import held_out
from contrastbench.domains.own import files_below, part_name
from contrastbench.domains.reading import reading, refuse
from contrastbench.domains.samples import Counted


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
    check_classes(root, classes)
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
    check_classes(root, classes)
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


def check_classes(root: Path, classes: tuple[str, ...]) -> None:
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
    there = files_below(root / folder)
    images = [name for name in there if Path(name).suffix.lower() in decode.IMAGE_SUFFIXES]
    fix = f", but files such as {there[0]}: save them as PNG" if there else ": fill or remove it"
    refuse(f"class folder {root / folder}", (not images, f" has no images{fix}"))
    return [f"{folder}/{name}" for name in images]


def left_out(root: Path, parts: Sequence[str], *read: dict[str, list[str]]) -> dict[str, Any]:
    used = {name for files in read for names in files.values() for name in names}
    there = [Path(part, name).as_posix() for part in parts for name in files_below(root / part)]
    others = [name for name in there if name not in used]
    note = "files left out, no images of a class"
    return {note: Counted.of(others)} if others else {}
