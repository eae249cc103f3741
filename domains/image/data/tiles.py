"""Tiles of photographs: three by three of each one's middle, all of a photograph in one part."""

from pathlib import Path

import torch
from torch import Tensor

from contrastbench.domains import download
from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.archives import members
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.decode import Kept
from contrastbench.domains.image.data.files import Part, check_sizes, content_of_files
from contrastbench.domains.image.data.folders import first_files
from contrastbench.domains.image.data.images import LoadedImages, Request, on_device

ROWS = 3  # of tiles in a photograph, and columns


def load_tiles(about: ImageDataset, asked: Request) -> LoadedImages:
    """Load the tiles of the declared classes, whose photographs are named CLASS_NUMBER.jpg.

    The digest is of the photographs' bytes and names.

    Raises:
        UserError: the files are not there, damaged or others.
    """
    path = download.local_file(about, asked.data_root) or download.fetch_file(about)
    kept = named_photographs(path, about.classes)
    named = {label: [n for n in kept.names if class_of(n) == label] for label in about.classes}
    classes, train, _ = about.sizes
    parts = first_files(named, train // ROWS**2 // classes)
    check_sizes(about, parts, path, ROWS**2)
    names = parts.train.names + parts.test.names
    digest = content_of_files(parts, names, [decode.image_header(n, kept.read(n)) for n in names])
    both = {"train": parts.train, "test": parts.test}
    samples = {name: tiles_of(part, kept, asked.size) for name, part in both.items()}
    return on_device(samples, parts.classes, asked.device)[0], digest


def class_of(name: str) -> str:
    """Return a photograph's class.

    >>> class_of("banded_0002.jpg")
    'banded'
    """
    return name.rpartition("_")[0]


def named_photographs(path: Path, classes: tuple[str, ...]) -> Kept:
    """The photographs of classes by their names alone, in folders of classes or in an archive."""
    if path.is_dir():
        kept = decode.opened(path)
        names = [place.name for place in decode.picture_paths(kept.names)]
        return Kept(names, lambda name: kept.read(f"{class_of(name)}/{name}"))
    files = dict(members(path, lambda member: member.parent.name in classes))
    return Kept(sorted(files), files.__getitem__)


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
