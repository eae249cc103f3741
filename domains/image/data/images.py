"""A set of images in its splits, each in memory or in its files, which are stored in one size."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.decode import Header, ReadBytes
from contrastbench.domains.image.views.draws import bernoulli, draw_crops
from contrastbench.domains.image.views.policies import Policy, Runs
from contrastbench.domains.image.views.spatial import to_float
from contrastbench.domains.image.views.transforms import random_crop, stored_size
from contrastbench.domains.progress import tracked
from contrastbench.domains.reading import reading
from contrastbench.domains.samples import chosen, draw_share
from contrastbench.errors import UserError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# ADNCE's code has them for all its sets
CIFAR_MEAN, CIFAR_STD = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
HELD_OUT_SHARE = 0.2  # of each class, where a folder has no test part
Names = tuple[str, ...]  # of the group of each image, such as its patient; or none
PartArrays = dict[str, tuple[Any, ...]]  # pixels, labels, and perhaps groups of each part
# A split whose pixels need more than that is read from its files batch by batch: on a CPU, whose
# processes each hold one, and on a card as a share of the memory that is free.
RESIDENT_BYTES, RESIDENT_SHARE = 4 << 30, 1 / 3
DECODED_AT_ONCE = 256  # images that are decoded and copied to the device at once
TESTED_TWICE = "test images that are training images too"  # by the bytes of their files
MAX_KEPT_SIDE = 96  # images that all have one size of at most so many pixels a side keep it
SIZES = "{} classes, {} training and {} test images"
Label = int | tuple[int, ...]  # a class, or 1, 0 or -1 for each class
FilesByClass = Mapping[str, Sequence[str]]  # names of files, in the order of classes


@dataclass(frozen=True)
class Images:
    """One split that fits into memory: all pixels on the device of the run."""

    pixels: Tensor  # (N, 3, H, W) uint8
    # (N,) int64 on the same device, -1 where there is none; or (N, classes) 1, 0 or -1 for each
    labels: Tensor
    groups: Names = ()

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, H, W) uint8 on the device: the images of those numbers."""
        return self.pixels[rows]

    def crops(self, runs: Runs, rng: torch.Generator) -> Iterator[Tensor]:
        """(count N, 3, size, size) in [0, 1] for each run: crops of all, drawn when asked."""
        return (random_crop(self.pixels, policy, rng, count) for policy, count in runs)

    def select(self, rows: Tensor) -> "Images":
        groups = chosen(self.groups, rows.tolist() if self.groups else ())  # a step never waits
        return Images(self.pixels[rows], self.labels[rows], groups)

    def ahead(self, parts: Sequence[Tensor]) -> Callable[[int], "Images"]:
        """The images of each of the parts, by its number."""
        return lambda number: self.select(parts[number])

    in_turn = ahead


@dataclass(frozen=True)
class Crops:
    """A batch of whole pictures of which only their crops were kept."""

    parts: Sequence[Tensor]  # for each policy (n, 3, size, size) uint8 on the device
    labels: Tensor  # (n,)

    def __len__(self) -> int:
        return len(self.labels)

    def crops(self, runs: Runs, rng: torch.Generator) -> Iterator[Tensor]:
        """(count n, 3, size, size) in [0, 1] for each run, flipped as drawn when asked."""
        parts = iter(self.parts)
        for policy, count in runs:
            x = to_float(torch.cat([next(parts) for _ in range(count)]))
            flipped = bernoulli(len(x), policy.flip, rng).view(-1, 1, 1, 1)
            yield torch.where(flipped, x.flip(3), x)


@dataclass(frozen=True)
class ImageFiles:
    """One split that is decoded from its files, batch by batch, by threads.

    A batch is one tensor: the shorter side of each image is resized to `stored`, and the middle
    (stored, stored) is kept. Crops are drawn from that square, or from the whole picture; then a
    picture is decoded once for all its crops, and only these are kept.
    """

    names: tuple[str, ...]
    read: ReadBytes
    labels: Tensor  # (N,) int64 on the device
    stored: int | None  # None: all files have one size, and keep it
    shape: tuple[int, int]  # height and width of all as they are stored
    # (N, 2) height and width on the device: crops are of whole pictures
    sides: Tensor | None = None
    groups: Names = ()

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, height, width) uint8 on the device: the images of those numbers, decoded now."""
        return self.begin(rows, rows.tolist())().pixels

    def ahead(self, parts: Sequence[Tensor]) -> Callable[[int], Images]:
        """The images of each of the parts, by its number, decoded while those before are used."""
        numbers = on_host(parts)
        return decode.Ahead(lambda k: self.begin(parts[k], numbers[k]), len(parts))

    def in_turn(self, parts: Sequence[Tensor]) -> Callable[[int], "Images | ImageFiles"]:
        """Decode like `ahead`; crops of whole pictures share a generator, so in turn."""
        return self.ahead(parts) if self.sides is None else lambda k: self.select(parts[k])

    def crops_ahead(
        self, parts: Sequence[Tensor], policies: Sequence[Policy], rngs: Sequence[torch.Generator]
    ) -> Callable[[int], Images | Crops]:
        """Decode like `ahead`, or cut the crops for each policy with each part's own generator."""
        if self.sides is None:
            return self.ahead(parts)
        return decode.Ahead(lambda k: self.select(parts[k]).cut(policies, rngs[k]), len(parts))

    def begin(self, rows: Tensor, numbers: Sequence[int]) -> Callable[[], Images]:
        """Start decoding the images; return what waits for them."""
        ready = self.decoded(
            [self.names[number] for number in numbers],
            [self.shape],
            lambda name, _: [decode.decode(name, self.read(name), self.stored)],
        )
        return lambda: Images(ready()[0], self.labels[rows])

    def cut(self, policies: Sequence[Policy], rng: torch.Generator) -> Callable[[], Crops]:
        """Have a crop of each whole picture cut for each policy; return what waits for them."""
        assert self.sides is not None, "pictures of one small size are stored whole"
        height, width = self.sides.unbind(1)
        boxes = [draw_crops(len(self), height, width, policy, rng) for policy in policies]
        sizes = [policy.size for policy in policies]
        places = torch.stack(boxes, dim=1).int().tolist()
        ready = self.decoded(
            self.names,
            [(size, size) for size in sizes],
            lambda name, k: decode.crops(name, self.read(name), places[k], sizes),
        )
        return lambda: Crops(ready(), self.labels)

    def decoded(
        self,
        names: Sequence[str],
        shapes: Sequence[tuple[int, int]],
        work: Callable[[str, int], Sequence[Tensor]],
    ) -> Callable[[], list[Tensor]]:
        """Have threads decode files, each into a picture of each shape; return what waits for them.

        The work makes the pictures of a file by its name and place.
        """
        device = self.labels.device
        pinned = device.type == "cuda"  # which is copied from unwaited for
        buffers = [
            torch.empty(len(names), 3, *shape, dtype=torch.uint8, pin_memory=pinned)
            for shape in shapes
        ]
        arrays = [buffer.numpy() for buffer in buffers]  # copies of tensors would start threads

        def fill(k: int) -> None:
            with reading(names[k], decode.REPLACE):  # its size may be another by now
                for array, picture in zip(arrays, work(names[k], k), strict=True):
                    array[k] = picture.numpy()

        begun = decode.begin_decoding(fill, len(names))

        def ready() -> list[Tensor]:
            for _ in begun:
                pass
            return [buffer.to(device, non_blocking=True) for buffer in buffers]

        return ready

    def crops(self, runs: Runs, rng: torch.Generator) -> Iterator[Tensor]:
        """(count N, 3, size, size) in [0, 1] for each run: crops of all images."""
        if self.sides is not None:
            policies = [policy for policy, count in runs for _ in range(count)]
            return self.cut(policies, rng)().crops(runs, rng)
        every = torch.arange(len(self), device=self.labels.device)
        return Images(self.batch(every), self.labels).crops(runs, rng)

    def select(self, rows: Tensor) -> "ImageFiles":
        names, groups = (chosen(of, rows.tolist()) for of in (self.names, self.groups))
        sides = None if self.sides is None else self.sides[rows]
        return replace(self, names=names, labels=self.labels[rows], sides=sides, groups=groups)


Split = Images | ImageFiles
Croppable = Split | Crops


def on_host(parts: Sequence[Tensor]) -> list[list[int]]:
    """The numbers of all parts; the host waits for the device once."""
    numbers = torch.cat(list(parts)).cpu() if parts else torch.empty(0, dtype=torch.long)
    return [part.tolist() for part in numbers.split([len(part) for part in parts])]


@dataclass(frozen=True)
class Request:
    """How a set of images is to be read."""

    size: int  # of the views in pixels
    data_root: Path | None  # a folder that may hold the files
    device: torch.device  # where pixels and labels go
    whole: bool = False  # crops are of whole pictures, decoded at each step, not of stored squares
    groups: str | None = None  # a pattern of files' names, or the name of an array


@dataclass(frozen=True)
class ImageSet:
    """A dataset of images in its published split."""

    train: Split  # labelled
    test: Split
    unlabelled: Split | None  # STL-10's: what an encoder trains on besides train
    classes: tuple[str, ...]
    validation: int = 0  # how many of the last training images its authors choose by
    drawn: bool = False  # whether the test images are a seeded share of each class
    mean: tuple[float, float, float] = CIFAR_MEAN  # of normalisation, of each colour in [0, 1]
    std: tuple[float, float, float] = CIFAR_STD
    # counted oddities: grey, alpha, 16-bit, resized ...
    notes: dict[str, Any] = field(default_factory=dict)


LoadedImages = tuple[ImageSet, str]  # and the sha256 of its content


def on_device(parts: PartArrays, classes: Iterable[str], device: torch.device) -> LoadedImages:
    """A set of (pixels, labels, groups) of its parts, on the device, and their sha256."""
    train, test, *rest = (Images(x.to(device), y.to(device), *g) for x, y, *g in parts.values())
    images = ImageSet(train, test, rest[0] if rest else None, tuple(classes))
    return images, content_of(parts)


def content_of(parts: PartArrays) -> str:
    digest = hashlib.sha256(
        repr([(name, tuple(pixels.shape)) for name, (pixels, *_) in parts.items()]).encode()
    )
    for pixels, labels, *groups in parts.values():
        digest.update(pixels.numpy().data)
        digest.update(labels.numpy().data)
        digest.update("\x1f".join(chain(*groups)).encode())
    return digest.hexdigest()


def held_out(labels: Tensor, groups: Names = ()) -> Tensor:
    """(N,) bool: a fifth of each class, at least one, the same for every run; whole groups."""
    tested = np.zeros(len(labels), dtype=bool)
    if groups:
        tested[draw_share(labels.numpy(), HELD_OUT_SHARE, 0, groups)[1]] = True
        return torch.from_numpy(tested)
    rng = np.random.default_rng(0)
    for label in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels.numpy() == label)
        tested[rng.permutation(rows)[: max(1, round(HELD_OUT_SHARE * len(rows)))]] = True
    return torch.from_numpy(tested)


def split_held_out(pixels: Tensor, labels: Tensor, *groups: Names) -> PartArrays:
    def part(rows: Tensor) -> tuple[Any, ...]:
        named = (chosen(names, rows.nonzero()[:, 0].tolist()) for names in groups)
        return pixels[rows], labels[rows], *named

    test = held_out(labels, *groups)
    return {"train": part(~test), "test": part(test)}


@dataclass(frozen=True)
class Part:
    """Names of a part's image files, with the class of each, or 1, 0 or -1 for each class."""

    names: tuple[str, ...]
    labels: tuple[Label, ...]
    groups: Names = ()

    def select(self, rows: Sequence[int]) -> "Part":
        labels = tuple(self.labels[row] for row in rows)
        return Part(chosen(self.names, rows), labels, chosen(self.groups, rows))


def part_of(files: Sequence[tuple[str, Label]]) -> Part:
    labels = (y if isinstance(y, tuple) else int(y) for _, y in files)  # torchvision has NumPy's
    return Part(tuple(name for name, _ in files), tuple(labels))


def by_label(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for label, name in files:
        named.setdefault(label, []).append(name)
    return named


def class_files(files: FilesByClass, classes: Sequence[str]) -> Part:
    return part_of([(name, k) for k, label in enumerate(classes) for name in files.get(label, [])])


@dataclass(frozen=True)
class Parts:
    """Training and test files of a set."""

    train: Part
    test: Part
    classes: tuple[str, ...]
    drawn: bool = False  # whether the test files are a seeded share of each class
    listed: bool = False  # whether classes stand in a list, so that no name tells an image's

    @classmethod
    def by_class(cls, train: FilesByClass, test: FilesByClass) -> "Parts":
        classes = tuple({**train, **test})
        return cls(class_files(train, classes), class_files(test, classes), classes)


def check_sizes(about: ImageDataset, parts: Parts, where: object, each: int = 1) -> None:
    counts = (each * len(part.names) for part in (parts.train, parts.test))
    found = (len(parts.classes), *counts)
    if about.sizes not in ((), found):
        theirs, said = SIZES.format(*found), SIZES.format(*about.sizes)
        raise UserError(f"{where} has {theirs}, {about.name} {said}: {about.again}")


def from_files(
    parts: Parts,
    read: ReadBytes,
    asked: Request,
    notes: Mapping[str, Any] | None = None,
    largest: int = MAX_KEPT_SIDE,
) -> LoadedImages:
    """A set of image files; its hash is that of their names, classes and bytes, however decoded.

    Pictures that all have one size of at most `largest` pixels a side keep it. Whole pictures of
    several sizes, or of larger ones, stay files.
    """
    names, trained = parts.train.names + parts.test.names, len(parts.train.names)
    look = decode.in_threads(lambda n: decode.image_header(n, read(n)), names, "checking images")
    headers = [*look]
    sizes = {(header.width, header.height) for header in headers}
    kept = len(sizes) == 1 and max(*sizes.pop()) <= max(largest, asked.size)
    side = None if kept else stored_size(asked.size)
    whole = asked.whole and side is not None
    train = stored(parts.train, read, headers, side, asked.device, whole)
    test = stored(parts.test, read, headers, side, asked.device)
    known = dict(notes or {}) | decode.oddities(headers) | resized(headers, side)
    seen = {header.sha256 for header in headers[:trained]}
    if twice := sum(header.sha256 in seen for header in headers[trained:]):
        known[TESTED_TWICE] = twice
    images = ImageSet(train, test, None, parts.classes, drawn=parts.drawn, notes=known)
    return images, content_of_files(parts, names, headers)


def photographs(
    about: ImageDataset, parts: Parts, where: Path, read: ReadBytes, asked: Request
) -> LoadedImages:
    check_sizes(about, parts, where)
    images, digest = from_files(parts, read, asked)
    return replace(images, mean=IMAGENET_MEAN, std=IMAGENET_STD), digest


def content_of_files(parts: Parts, names: Sequence[str], headers: Sequence[Header]) -> str:
    digest = hashlib.sha256(repr((parts.classes, len(parts.train.names))).encode())
    for name, header in zip(names, headers, strict=True):
        digest.update(f"{name}\0{header.sha256}\n".encode())
    for part in (parts.train, parts.test):
        digest.update("\x1f".join(part.groups).encode())
    if parts.listed:
        digest.update(f"{parts.train.labels}{parts.test.labels}".encode())
    return digest.hexdigest()


def resized(headers: list[Header], side: int | None) -> dict[str, int]:
    if side is None:
        return {}
    smaller = sum(min(header.width, header.height) < side for header in headers)
    others = sum((header.width, header.height) != (side, side) for header in headers) - smaller
    counts = {f"enlarged to {side} x {side}": smaller, f"reduced or cut to {side} x {side}": others}
    return {note: count for note, count in counts.items() if count}


def stored(
    part: Part,
    read: ReadBytes,
    headers: list[Header],
    side: int | None,
    device: torch.device,
    whole: bool = False,
) -> Images | ImageFiles:
    """Return a part's pixels if they fit, else its files; the `whole` pictures come first."""
    labels = torch.tensor(part.labels, device=device)
    shape = (headers[0].height, headers[0].width) if side is None else (side, side)
    files = ImageFiles(part.names, read, labels, side, shape, groups=part.groups)
    if whole:
        sides = [(header.height, header.width) for header in headers[: len(files)]]
        return replace(files, sides=torch.tensor(sides, device=device).float())
    cuda = device.type == "cuda"
    room = RESIDENT_SHARE * torch.cuda.mem_get_info(device)[0] if cuda else RESIDENT_BYTES
    if len(files) * 3 * shape[0] * shape[1] > room:
        return files
    pixels = torch.empty(len(files), 3, *shape, dtype=torch.uint8, device=device)
    parts = torch.arange(len(files), device=device).split(DECODED_AT_ONCE)
    decoded = files.ahead(parts)
    for k in tracked(range(len(parts)), "decoding images"):
        pixels[k * DECODED_AT_ONCE : k * DECODED_AT_ONCE + len(parts[k])] = decoded(k).pixels
    return Images(pixels, labels, part.groups)
