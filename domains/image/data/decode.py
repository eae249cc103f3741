"""Image files: headers and pixels; what is wrong with one is one line that names it."""

import hashlib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from joblib import cpu_count
from PIL import ExifTags, Image, UnidentifiedImageError, features
from torch import Tensor

from contrastbench.domains.own import files_below
from contrastbench.domains.progress import Progress
from contrastbench.domains.reading import contents, member, member_names, reading, refuse
from contrastbench.errors import UserError

IMAGE_SUFFIXES = {
    *(".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm"),
    *(".avif", ".tif", ".tiff", ".webp"),
}
MIN_LARGEST = 2**12  # of a 16-bit image; below it the higher 8 bits keep fewer than 16 levels
AVIF = ("AVIF",) if features.check("avif") else ()  # which Pillow can since 11.3
# Pillow runs a program for EPS
IMAGE_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP", *AVIF)
MIN_SIDE = 8  # pixels a side
MAX_PIXELS = 2**26  # pixels; each thread that decodes may hold as many
PACKED = 2**28  # bytes of an image file in an archive
REPLACE = "remove or replace it"
IMAGES_IN_LINE = 1024  # images that wait at most, so that an error does not wait for all others
IMAGES_PER_THREAD = 8  # images of a batch that a thread takes at once: all threads are to have some
BATCHES_AHEAD = 2  # batches that are decoded while one is used
FIRST_FRAME = "first of several frames taken"
TURNED = "EXIF orientation not applied"
ORIENTATION = ExifTags.Base.Orientation
ReadBytes = Callable[[str], bytes]  # an image's name -> its bytes
T = TypeVar("T")


class Kept(NamedTuple):
    """Files of a set, in a folder or in a zip."""

    names: Sequence[str]
    read: ReadBytes


@dataclass(frozen=True)
class Header:
    """The header of an image file."""

    width: int
    height: int
    mode: str
    frames: int  # of an animation, pages of a TIFF; 1 otherwise
    turned: bool  # whether its EXIF asks to show it turned
    sha256: str  # of the file


def folder_reader(root: Path) -> ReadBytes:
    return lambda name: contents(root / name)


def opened(path: Path, fix: str = REPLACE, top: str | None = None) -> Kept:
    """The files of a folder, or those in one folder of a zip.

    By default that is the only folder at the zip's top, if there is only one.
    """
    if path.is_dir():
        return Kept(files_below(path), folder_reader(path))
    with reading(path, fix):
        archive = zipfile.ZipFile(path)
        names = [name for name in member_names(archive) if not name.endswith("/")]
    tops = {name.partition("/")[0] for name in names} - {"__MACOSX"}
    if top is None:
        top = f"{tops.pop()}/" if len(tops) == 1 else ""
    inside = [name.removeprefix(top) for name in names if name.startswith(top)]

    def read(name: str) -> bytes:
        with reading(f"{path}: {top}{name}", fix):
            return member(archive, top + name, PACKED)

    return Kept(inside, read)


def picture_paths(names: Iterable[str]) -> list[PurePosixPath]:
    paths = sorted(map(PurePosixPath, names))
    return [path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES]


@cache
def pool() -> ThreadPoolExecutor:
    """Threads that read and decode: Pillow does both without holding the interpreter's lock."""
    return ThreadPoolExecutor(min(16, cpu_count()), thread_name_prefix="decode")


def begin_decoding(work: Callable[[int], None], count: int) -> Iterator[None]:
    """Have threads do the work for 0, 1, ... count - 1; whoever goes through it waits for them.

    The first error in order, or Ctrl-C, is raised there, and no thread begins more of it.
    """

    def some(start: int) -> None:
        for number in range(start, min(start + IMAGES_PER_THREAD, count)):
            work(number)

    return pool().map(some, range(0, count, IMAGES_PER_THREAD))


def cancel_decoding() -> None:
    """Cancel all decoding that no thread has begun, so that nobody waits for it."""
    pool().shutdown(wait=False, cancel_futures=True)
    pool.cache_clear()


class Ahead(Generic[T]):
    """Batches by number that threads prepare: who asks for one has the next ones begun.

    Whoever goes on in the middle of an epoch begins there.
    """

    def __init__(self, begin: Callable[[int], Callable[[], T]], count: int) -> None:
        self.begin, self.count = begin, count
        self.begun: dict[int, Callable[[], T]] = {}

    def __call__(self, number: int) -> T:
        for k in range(number, min(number + BATCHES_AHEAD + 1, self.count)):
            if k not in self.begun:
                self.begun[k] = self.begin(k)
        return self.begun.pop(number)()


def in_threads(work: Callable[[str], Any], names: Sequence[str], task: str) -> Iterator[Any]:
    """The work on each name in order, with progress; the first error in order is raised."""

    def some(start: int) -> list[Any]:
        return [work(name) for name in names[start : start + IMAGES_PER_THREAD]]

    with Progress(len(names), task) as progress:
        for start in range(0, len(names), IMAGES_IN_LINE):
            line = range(start, min(start + IMAGES_IN_LINE, len(names)), IMAGES_PER_THREAD)
            for result in chain.from_iterable(pool().map(some, line)):
                progress.step()
                yield result


def image_header(name: str, data: bytes) -> Header:
    image = open_image(name, data)
    size = f"{image.width} x {image.height} pixels, fewer than {MIN_SIDE} a side"
    mode = f" has pixels of mode {image.mode}, not of 8 or 16 bits: convert it to RGB"
    refuse(name, (min(image.size) < MIN_SIDE, f" has {size}: remove it"), (image.mode == "F", mode))
    with reading(name, REPLACE):
        frames = int(getattr(image, "n_frames", 1))
    digest = hashlib.sha256(data).hexdigest()
    return Header(image.width, image.height, image.mode, frames, is_turned(image), digest)


def is_turned(image: Image.Image) -> bool:
    """Return whether a file's EXIF asks for a turn that is not made (Pillow turns TIFFs)."""
    if image.format == "TIFF" or "exif" not in image.info:
        return False
    try:
        return image.getexif().get(ORIENTATION, 1) != 1
    except Exception:  # whatever Pillow raises of damaged EXIF, the pixels may be whole
        return False


def open_image(name: str, data: bytes) -> Image.Image:
    with reading(name, REPLACE):
        try:
            image = Image.open(BytesIO(data), formats=IMAGE_FORMATS)
        except UnidentifiedImageError:
            reason = "it is empty" if not data else "it holds something else"
            raise UserError(f"{name} is no image ({reason}): {REPLACE}") from None
        except Image.DecompressionBombError as error:
            raise UserError(f"{name} is too large ({error}): make it smaller") from None
    size = f"{image.width} x {image.height} pixels, more than {MAX_PIXELS}"
    large = image.width * image.height > MAX_PIXELS
    refuse(name, (large, f" is too large ({size}): make it smaller"))
    return image


def decode(name: str, data: bytes, side: int | None) -> Tensor:
    """(3, H, W) uint8 pixels of an image file, or its resized (side, side) middle."""
    image = open_rgb(name, data)
    if side is not None and image.size != (side, side):
        image = centre_crop(image, side)
    return to_tensor(image)


def crops(
    name: str, data: bytes, boxes: Sequence[Sequence[int]], sizes: Sequence[int]
) -> list[Tensor]:
    """(3, size, size) uint8 of parts of an image file, each resized as torchvision's are.

    Boxes are top, left, height and width of each part in pixels.
    """
    image, tensors = open_rgb(name, data), []
    for (top, left, height, width), size in zip(boxes, sizes, strict=True):
        part = image.crop((left, top, left + width, top + height))
        tensors.append(to_tensor(part.resize((size, size), Image.Resampling.BILINEAR)))
    return tensors


def open_rgb(name: str, data: bytes) -> Image.Image:
    with reading(name, REPLACE):
        return to_rgb(open_image(name, data), name)


def to_tensor(image: Image.Image) -> Tensor:
    """(3, H, W) uint8 of an image of three colours."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def to_rgb(image: Image.Image, name: str = "an image") -> Image.Image:
    """Three colours of 8 bits, transparency left out as torchvision's ImageFolder does."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError("values of more than 16 bits")
        grey = f" is 16-bit grey from {values.min()} to {values.max()}"
        fault = ", too dark for the higher 8 bits: save it in 8 bits"
        refuse(name, (bool(0 < values.max() < MIN_LARGEST), grey + fault))
        image = Image.fromarray((values >> 8).astype(np.uint8))
    if "transparency" in image.info:  # a palette's, which Pillow leaves out by this detour only
        image = image.convert("RGBA")
    return image.convert("RGB")


def centre_crop(image: Image.Image, side: int) -> Image.Image:
    """The (side, side) middle of an image whose shorter side is resized to that."""
    scale = side / min(image.size)
    width, height = (max(side, int(length * scale + 1e-6)) for length in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - side) / 2), round((height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def oddities(headers: Iterable[Header]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for header in headers:
        if header.mode in ("1", "L"):
            counts["grey, in all three colours"] += 1
        elif header.mode != "RGB":
            counts[f"{header.mode}, converted to RGB"] += 1
        counts.update([FIRST_FRAME] * (header.frames > 1) + [TURNED] * header.turned)
    return dict(counts)
