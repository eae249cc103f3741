"""Image files: headers and pixels; what is wrong with one is one line that names it."""

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from contrastbench.domains.progress import Progress
from contrastbench.losses.errors import UserError

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
SMALLEST = 8  # pixels a side
BLOCK = 32  # images that a thread takes at once, and blocks that wait at most
TAKEN_AS = {  # Pillow's mode -> what happened to such an image; RGB is as it should be
    "1": "grey, in all three colours",
    "L": "grey, in all three colours",
    "LA": "grey, in all three colours; transparency left out",
    "P": "palette",
    "PA": "palette, transparency left out",
    "RGBA": "transparency left out",
    "RGBX": "transparency left out",
    "CMYK": "CMYK, converted",
    "YCbCr": "YCbCr, converted",
    "LAB": "LAB, converted",
    "HSV": "HSV, converted",
    "I": "16-bit grey, higher 8 bits taken",
    "I;16": "16-bit grey, higher 8 bits taken",
    "I;16B": "16-bit grey, higher 8 bits taken",
    "I;16L": "16-bit grey, higher 8 bits taken",
}
# of Pillow
DAMAGE = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    struct.error,
    zlib.error,
)
FIRST_FRAME = "first of several frames taken"
ReadBytes = Callable[[str], bytes]  # an image's name -> its bytes


@dataclass(frozen=True)
class Header:
    """What an image file says of itself."""

    width: int
    height: int
    mode: str
    frames: int  # of an animation, pages of a TIFF; 1 otherwise
    sha256: str  # of the file


def folder_reader(root: Path) -> ReadBytes:
    """Files of a folder, by their names in it."""

    def read(name: str) -> bytes:
        try:
            return (root / name).read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {root / name} ({error.strerror})") from None

    return read


def zip_reader(path: Path, fix: str) -> ReadBytes:
    """Members of a zip, read in place."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{path} is damaged ({error}): {fix}") from None

    def read(name: str) -> bytes:
        try:
            return archive.read(name)
        except KeyError:
            raise UserError(f"{path} has no {name}: {fix}") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise UserError(f"{path}: {name} is damaged ({error}): {fix}") from None

    return read


def zip_names(path: Path) -> list[str]:
    """Members of a zip that `zip_reader` has opened before."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@cache
def pool() -> ThreadPoolExecutor:
    """Threads that read and decode: Pillow does both without holding the interpreter's lock."""
    return ThreadPoolExecutor(min(16, os.cpu_count() or 1), thread_name_prefix="decode")


def in_threads(work: Callable[[str], Any], names: Sequence[str], task: str) -> Iterator[Any]:
    """The work on each name in order, with progress; the first error in order is raised."""
    blocks = [names[start : start + BLOCK] for start in range(0, len(names), BLOCK)]
    with Progress(len(names), task) as progress:
        for start in range(0, len(blocks), BLOCK):  # so that an error does not wait for all others
            for results in pool().map(
                lambda block: [work(name) for name in block], blocks[start : start + BLOCK]
            ):
                for result in results:
                    progress.step()
                    yield result


def look_at(names: Sequence[str], read: ReadBytes) -> list[Header]:
    """The headers of image files.

    Raises:
        UserError: one is no image, or too small.
    """
    return list(in_threads(lambda name: look(name, read(name)), names, "checking images"))


def look(name: str, data: bytes) -> Header:
    """The header of an image file."""
    image = open_image(name, data)
    if min(image.size) < SMALLEST:
        size = f"{image.width} x {image.height} pixels, fewer than {SMALLEST} a side"
        raise UserError(f"{name} has {size}: remove it")
    if image.mode != "RGB" and image.mode not in TAKEN_AS:
        raise UserError(
            f"{name} has pixels of mode {image.mode}, not of 8 or 16 bits: convert it to RGB"
        )
    return Header(
        image.width, image.height, image.mode, frames(name, image), hashlib.sha256(data).hexdigest()
    )


def frames(name: str, image: Image.Image) -> int:
    """How many images a file holds."""
    try:
        return int(getattr(image, "n_frames", 1))
    except DAMAGE as error:
        raise UserError(f"{name} is damaged ({error}): remove or replace it") from None


def open_image(name: str, data: bytes) -> Image.Image:
    """The image in a file's bytes, not yet decoded."""
    try:
        return Image.open(BytesIO(data))
    except UnidentifiedImageError:
        reason = "it is empty" if not data else "it holds something else"
        raise UserError(f"{name} is no image ({reason}): remove or replace it") from None
    except Image.DecompressionBombError as error:
        raise UserError(f"{name} is too large ({error}): make it smaller") from None
    except DAMAGE as error:
        raise UserError(f"{name} is damaged ({error}): remove or replace it") from None


def decode(name: str, data: bytes, side: int | None) -> Tensor:
    """(3, H, W) uint8 pixels of an image file, or its resized (side, side) middle.

    Raises:
        UserError: the file is damaged.
    """
    image = open_rgb(name, data)
    if side is not None and image.size != (side, side):
        image = middle(image, side)
    return to_tensor(image)


def crops(
    name: str, data: bytes, boxes: Sequence[Sequence[int]], sizes: Sequence[int]
) -> list[Tensor]:
    """(3, size, size) uint8 of parts of an image file, each resized as torchvision's are.

    Args:
        name: of the file.
        data: its bytes.
        boxes: top, left, height, width of each part in pixels.
        sizes: of the results.

    Raises:
        UserError: the file is damaged.
    """
    image = open_rgb(name, data)
    return [
        to_tensor(
            image.crop((left, top, left + width, top + height)).resize(
                (size, size), Image.Resampling.BILINEAR
            )
        )
        for (top, left, height, width), size in zip(boxes, sizes, strict=True)
    ]


def open_rgb(name: str, data: bytes) -> Image.Image:
    """The decoded image in a file's bytes."""
    try:
        return to_rgb(open_image(name, data))
    except UserError:
        raise
    except DAMAGE as error:
        raise UserError(f"{name} is damaged ({error}): remove or replace it") from None


def to_tensor(image: Image.Image) -> Tensor:
    """(3, H, W) uint8 of an image of three colours."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def to_rgb(image: Image.Image) -> Image.Image:
    """Three colours of 8 bits, transparency left out as torchvision's ImageFolder does."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError("values of more than 16 bits")
        image = Image.fromarray((values >> 8).astype(np.uint8))
    if "transparency" in image.info:  # a palette's, which Pillow leaves out by this detour only
        image = image.convert("RGBA")
    return image.convert("RGB")


def middle(image: Image.Image, side: int) -> Image.Image:
    """The (side, side) middle of an image whose shorter side is resized to that."""
    scale = side / min(image.size)
    width, height = (max(side, int(length * scale + 1e-6)) for length in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - side) / 2), round((height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def oddities(headers: Iterable[Header]) -> dict[str, int]:
    """How many images were taken as something else than they are."""
    counts: dict[str, int] = {}
    for header in headers:
        conversions = [TAKEN_AS[header.mode]] if header.mode in TAKEN_AS else []
        for oddity in conversions + [FIRST_FRAME] * (header.frames > 1):
            counts[oddity] = counts.get(oddity, 0) + 1
    return counts
