"""Images: CIFAR, STL-10, Tiny-ImageNet, ImageNet-100, scikit-learn's digits and anybody's folders, read strictly."""

import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import interpolate

from contrastbench.domains.datasets import DATASETS
from contrastbench.domains.download import fetch
from contrastbench.domains.image import decode
from contrastbench.domains.image.decode import Header, Reader
from contrastbench.domains.image.imagenet100 import CLASSES as IMAGENET_100
from contrastbench.domains.image.views import stored_size
from contrastbench.losses.errors import UserError, unknown

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # ADNCE's code has them for all its sets
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RESIDENT_BYTES = 4 << 30  # a split whose pixels need more than that is read from its files batch by batch
KEPT = 96  # images that all have one size of at most so many pixels a side keep it
HELD_OUT = 0.2  # of each class, where a folder has no test part
PART_NAMES = ("train", "test", "val")
AGAIN = "delete it and download {} again"


@dataclass(frozen=True)
class Images:
    """One split that fits into memory: all pixels on the device of the run."""

    pixels: Tensor  # (N, 3, H, W) uint8
    labels: Tensor  # (N,) int64 on the same device; -1 where there is none

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, H, W) uint8 on the device: the images of those numbers."""
        return self.pixels[rows]

    def select(self, rows: Tensor) -> "Images":
        """The split's images of those numbers: a validation part, or a small one."""
        return Images(self.pixels[rows], self.labels[rows])


@dataclass(frozen=True)
class ImageFiles:
    """One split that does not fit: the same interface, each batch decoded from its files by a pool of threads.

    The shorter side of each image is resized to `stored`, and the middle (stored, stored) is kept, so that a batch is
    one tensor; crops are therefore drawn from that square and not from the whole picture.
    """

    names: tuple[str, ...]
    read: Reader
    labels: Tensor  # (N,) int64 on the device
    stored: int | None  # None: all files have one size, and keep it

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Tensor) -> Tensor:
        """(n, 3, stored, stored) uint8 on the device: the images of those numbers, decoded now."""
        device = self.labels.device
        pixels = torch.stack(list(decode.pool().map(self.pixels, rows.tolist())))
        return pixels.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else pixels.to(device)

    def pixels(self, row: int) -> Tensor:
        """(3, stored, stored) uint8 of one image."""
        return decode.decode(self.names[row], self.read(self.names[row]), self.stored)

    def select(self, rows: Tensor) -> "ImageFiles":
        """The split's images of those numbers: a validation part, or a small one."""
        return ImageFiles(tuple(self.names[row] for row in rows.tolist()), self.read, self.labels[rows], self.stored)


@dataclass(frozen=True)
class ImageSet:
    """A dataset of images in its published split."""

    train: Images | ImageFiles  # labelled
    test: Images | ImageFiles
    unlabelled: Images | ImageFiles | None  # STL-10's: what an encoder trains on besides train
    classes: tuple[str, ...]
    mean: tuple[float, float, float] = CIFAR_MEAN  # of normalisation, of each colour in [0, 1]
    std: tuple[float, float, float] = CIFAR_STD
    notes: dict[str, Any] = field(default_factory=dict)  # counted oddities: grey, alpha, 16-bit, resized ...


def load(dataset: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """A set of images by name and the sha256 of its content.

    Args:
        dataset: a declared set, or `folder:PATH` (absolute, from here, or from the data root) with
            train/CLASS/FILE and test/CLASS/FILE (or val), or with CLASS/FILE and a seeded fifth of each class as test.
        size: of the views in pixels. Images that all have one size of at most 96 pixels keep it; the embedded digits
            are enlarged to `size`; others are stored with `stored_size(size)` pixels a side.
        data_root: a folder that already holds the files.
        device: where pixels and labels go.

    Raises:
        UserError: unknown name, no file and no network, or a file that is no image.
    """
    kind, colon, path = dataset.partition(":")
    if colon and kind == "folder":
        root = find_folder(Path(path), data_root)
        return load_folder(root, size, device, state(root))
    if dataset not in LOADERS:
        raise unknown("image dataset", dataset, LOADERS, "; your own images: folder:PATH")
    return load_declared(dataset, size, data_root, device)


@lru_cache(maxsize=1)
def load_declared(dataset: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """A declared set; the last one stays in memory for the next seed."""
    return LOADERS[dataset](dataset, size, data_root, device)


@lru_cache(maxsize=1)
def load_folder(root: Path, size: int, device: torch.device, state: str) -> tuple[ImageSet, str]:
    """A user's folder; the last one stays in memory for the next seed, unless it was changed since."""
    parts, notes = folder_parts(root)
    return from_files(parts, decode.folder_reader(root), notes, size, device)


# Pixels in arrays


def on_device(
    parts: dict[str, tuple[Tensor, Tensor]], classes: Iterable[str], device: torch.device
) -> tuple[ImageSet, str]:
    """A set of (pixels, labels) of its parts, on the device, and their sha256."""
    digest = hashlib.sha256(repr([(name, tuple(pixels.shape)) for name, (pixels, _) in parts.items()]).encode())
    for pixels, labels in parts.values():
        digest.update(pixels.numpy().data)
        digest.update(labels.numpy().data)
    train, test, *rest = (Images(pixels.to(device), labels.to(device)) for pixels, labels in parts.values())
    return ImageSet(train, test, rest[0] if rest else None, tuple(classes)), digest.hexdigest()


def load_embedded(name: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """scikit-learn's digits, enlarged to the size of views; their hash is that of the 8 x 8 pixels."""
    data = load_digits()
    pixels = torch.from_numpy((data.images * (255 / 16)).round().astype(np.uint8))[:, None]
    labels = torch.from_numpy(data.target.astype(np.int64))
    test = held_out(labels)
    parts = {name: (pixels[rows], labels[rows]) for name, rows in (("train", ~test), ("test", test))}
    small, digest = on_device(parts, map(str, data.target_names), torch.device("cpu"))
    train, test_images = (enlarge(part, size, device) for part in (small.train, small.test))
    return ImageSet(train, test_images, None, small.classes), digest


def enlarge(images: Images | ImageFiles, size: int, device: torch.device) -> Images:
    """Grey images in all three colours at another size."""
    rows = torch.arange(len(images), device=images.labels.device)
    large = interpolate(images.batch(rows).float(), (size, size), mode="bilinear", antialias=True)
    return Images(large.round().byte().expand(-1, 3, -1, -1).contiguous().to(device), images.labels.to(device))


def held_out(labels: Tensor) -> Tensor:
    """(N,) bool: a fifth of each class, at least one, the same for every run."""
    chosen = np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng(0)
    for label in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels.numpy() == label)
        chosen[rng.permutation(rows)[: max(1, round(HELD_OUT * len(rows)))]] = True
    return torch.from_numpy(chosen)


def load_cifar(name: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """CIFAR-10 or CIFAR-100 in the binary version: no pickles."""
    hundred = name == "CIFAR-100"
    files = ("train.bin",) if hundred else tuple(f"data_batch_{k}.bin" for k in range(1, 6))
    test, words = ("test.bin", "fine_label_names.txt") if hundred else ("test_batch.bin", "batches.meta.txt")
    folder = "cifar-100-binary" if hundred else "cifar-10-batches-bin"
    raw = Members(name, folder, data_root).read((*files, test, words))
    train = records(name, b"".join(raw[file] for file in files), 50_000, 1 + hundred)
    parts = {"train": train, "test": records(name, raw[test], 10_000, 1 + hundred)}
    return on_device(parts, raw[words].decode().split(), device)


def records(name: str, raw: bytes, count: int, labels: int) -> tuple[Tensor, Tensor]:
    """Pixels and classes of CIFAR's records; the last of a record's labels is the class."""
    table = exactly(name, raw, (count, labels + 3 * 32 * 32))
    return table[:, labels:].reshape(-1, 3, 32, 32).contiguous(), table[:, labels - 1].long()


def load_stl(name: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """STL-10 in the binary version, its unlabelled images included."""
    counts = {"train": 5_000, "test": 8_000, "unlabeled": 100_000}
    files = [f"{part}_{kind}.bin" for part in counts for kind in "Xy" if (part, kind) != ("unlabeled", "y")]
    raw = Members(name, "stl10_binary", data_root).read((*files, "class_names.txt"))
    parts = {}
    for part, count in counts.items():
        columns = exactly(name, raw.pop(f"{part}_X.bin"), (count, 3, 96, 96))
        labels = raw.get(f"{part}_y.bin", bytes(count))
        parts[part] = columns.mT.contiguous(), exactly(name, labels, (count,)).long() - 1
    return on_device(parts, raw["class_names.txt"].decode().split(), device)


def exactly(name: str, raw: bytes, shape: tuple[int, ...]) -> Tensor:
    """Bytes as an array of that shape."""
    expected = int(np.prod(shape))
    if len(raw) != expected:
        raise UserError(f"{name} is damaged: {len(raw)} bytes instead of {expected}; " + again(name))
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(shape)


def again(name: str) -> str:
    """What to do with a damaged file."""
    return AGAIN.format(DATASETS[name].url)


@dataclass(frozen=True)
class Members:
    """Files of a declared set: in the data root unpacked, there as an archive, or downloaded; nothing is extracted."""

    name: str
    folder: str
    data_root: Path | None

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """The files' bytes.

        Raises:
            UserError: one is missing, or the archive is damaged.
        """
        root = self.data_root / self.folder if self.data_root else None
        if root and root.is_dir():
            return {name: decode.folder_reader(root)(name) for name in names}
        path = archive(self.name, self.data_root)
        try:
            found = dict(self.members(path, set(names)))
        except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
            raise UserError(f"{path} is damaged ({error}): {again(self.name)}") from None
        missing = [name for name in names if name not in found]
        if missing:
            raise UserError(f"{path} has no {self.folder}/{missing[0]}: {again(self.name)}")
        return found

    def members(self, path: Path, names: set[str]) -> Iterator[tuple[str, bytes]]:
        """The files of those names inside the archive."""
        with tarfile.open(path, "r|gz") as tar:
            for member in tar:
                name = Path(member.name).name
                if name in names and Path(member.name).parent.name == self.folder:
                    file = tar.extractfile(member)
                    if file is not None:
                        yield name, file.read()


def archive(name: str, data_root: Path | None) -> Path:
    """A declared set's archive, from the data root, the cache or the network."""
    here = data_root / DATASETS[name].file if data_root else None
    return here if here and here.is_file() else fetch(DATASETS[name])


# Image files


@dataclass(frozen=True)
class Part:
    """Names of a part's image files, with the class of each."""

    names: tuple[str, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Parts:
    """Training and test files of a set."""

    train: Part
    test: Part
    classes: tuple[str, ...]


def from_files(
    parts: Parts, read: Reader, notes: dict[str, Any], size: int, device: torch.device
) -> tuple[ImageSet, str]:
    """A set of image files; its hash is that of their names and bytes, however they are decoded."""
    names = parts.train.names + parts.test.names
    headers = decode.look_at(names, read)
    digest = hashlib.sha256(repr((parts.classes, len(parts.train.names))).encode())
    for name, header in zip(names, headers, strict=True):
        digest.update(f"{name}\0{header.sha256}\n".encode())
    side = common_side(headers, size)
    notes = notes | decode.oddities(headers) | resized(headers, side)
    train, test = (split(part, read, headers[0], side, device) for part in (parts.train, parts.test))
    return ImageSet(train, test, None, parts.classes, notes=notes), digest.hexdigest()


def common_side(headers: list[Header], size: int) -> int | None:
    """Pixels a side in which images are stored; None: all have one small size, and keep it."""
    sizes = {(header.width, header.height) for header in headers}
    return None if len(sizes) == 1 and max(*sizes.pop()) <= max(KEPT, size) else stored_size(size)


def resized(headers: list[Header], side: int | None) -> dict[str, int]:
    """How many images are stored in another size than they have."""
    if side is None:
        return {}
    smaller = sum(min(header.width, header.height) < side for header in headers)
    others = sum((header.width, header.height) != (side, side) for header in headers) - smaller
    counts = {f"enlarged to {side} x {side}": smaller, f"reduced or cut to {side} x {side}": others}
    return {what: count for what, count in counts.items() if count}


def split(part: Part, read: Reader, header: Header, side: int | None, device: torch.device) -> Images | ImageFiles:
    """A part's pixels if they fit, else its files."""
    labels = torch.tensor(part.labels, device=device)
    width, height = (header.width, header.height) if side is None else (side, side)
    if len(labels) * 3 * width * height > RESIDENT_BYTES:
        return ImageFiles(part.names, read, labels, side)
    pixels = torch.empty(len(labels), 3, height, width, dtype=torch.uint8)
    decoded = decode.in_threads(lambda name: decode.decode(name, read(name), side), part.names, "decoding images")
    for row, image in enumerate(decoded):
        pixels[row] = image
    return Images(pixels.to(device), labels)


def find_folder(path: Path, data_root: Path | None) -> Path:
    """The folder of that name, here or in the data root."""
    for place in (path, data_root / path if data_root else path):
        if place.is_dir():
            return place.resolve()
    raise UserError(f"no folder {path}" + (f", nor in {data_root}" if data_root else "; its place: --data-root"))


def state(root: Path) -> str:
    """Names, sizes and times of a folder's files, hashed: whether it was changed."""
    digest = hashlib.sha256()
    for name in files_below(root):
        known = (root / name).stat()
        digest.update(f"{name}\0{known.st_size}\0{known.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def files_below(root: Path) -> list[str]:
    """Sorted names of all files in a folder and its folders, hidden ones left out."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        place = Path(folder).relative_to(root)
        found += [(place / name).as_posix() for name in files if not name.startswith(".")]
    return sorted(found)


def folder_parts(root: Path) -> tuple[Parts, dict[str, Any]]:
    """Training and test files of a folder in ImageFolder's layout, and how many other files it has.

    Raises:
        UserError: no classes, an empty one, one that is in the test part alone, or a single one.
    """
    folders = [name for name in PART_NAMES if (root / name).is_dir()]
    if "train" not in folders:
        return one_part(root)
    if len(folders) == 1:
        raise UserError(f"{root} has train, but neither test nor val: add one, or give folder:{root / 'train'}")
    train, test = (classes_of(root, name) for name in folders[:2])
    extra = sorted(test.keys() - train.keys())
    if extra:
        raise UserError(f"{root / folders[1] / extra[0]}: {root / 'train'} has no such class; move or remove it")
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
        raise UserError(f"{root / lonely[0]} has one image, but training and test part need one each: add or remove it")
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
    pairs = [(name, number) for number, label in enumerate(classes) for name in files.get(label, [])]
    return Part(tuple(name for name, _ in pairs), tuple(number for _, number in pairs))


def classes_of(root: Path, name: str) -> dict[str, list[str]]:
    """Image files of each class folder of a part, by names from the root."""
    place = root / name
    folders = sorted(path for path in place.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        fix = "put the images of each class into a folder of that name"
        raise UserError(f"{place.resolve()} has no class folders: {fix}")
    return {folder.name: images_of(root, (Path(name) / folder.name).as_posix()) for folder in folders}


def images_of(root: Path, folder: str) -> list[str]:
    """Image files of a class folder, by names from the root."""
    images = [name for name in files_below(root / folder) if Path(name).suffix.lower() in decode.SUFFIXES]
    if not images:
        raise UserError(f"class folder {root / folder} has no images: fill or remove it")
    return [f"{folder}/{name}" for name in images]


def left_out(root: Path, parts: Sequence[str], *read: dict[str, list[str]]) -> dict[str, Any]:
    """How many files of the parts are no images by their names."""
    there = sum(len(files_below(root / name)) for name in parts)
    others = there - sum(len(names) for files in read for names in files.values())
    return {"files left out, no images by their names": others} if others else {}


def load_tiny(name: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """Tiny-ImageNet from its zip or its folder; the test part is the published validation part."""
    folder = data_root / "tiny-imagenet-200" if data_root else None
    if folder and folder.is_dir():
        read, names = decode.folder_reader(folder), files_below(folder)
    else:
        path = archive(name, data_root)
        whole = decode.zip_reader(path, again(name))
        names = [n.removeprefix("tiny-imagenet-200/") for n in decode.zip_names(path)]
        read = lambda member: whole(f"tiny-imagenet-200/{member}")  # noqa: E731
    return from_files(tiny_parts(read, names), read, {}, size, device)


def tiny_parts(read: Reader, names: Iterable[str]) -> Parts:
    """Tiny-ImageNet's files: training images lie in folders of their class, validation images are listed."""
    classes = tuple(sorted(read("wnids.txt").decode().split()))
    number = {label: k for k, label in enumerate(classes)}
    images = sorted(n for n in names if n.startswith("train/") and n.endswith(".JPEG"))
    rows = [line.split("\t")[:2] for line in read("val/val_annotations.txt").decode().splitlines()]
    try:
        train = Part(tuple(images), tuple(number[n.split("/")[1]] for n in images))
        test = Part(tuple(f"val/images/{file}" for file, _ in rows), tuple(number[label] for _, label in rows))
    except (KeyError, ValueError) as error:
        raise UserError(f"Tiny-ImageNet is damaged (unknown class {error}): {again('Tiny-ImageNet')}") from None
    if not train.names or not test.names:
        raise UserError(f"Tiny-ImageNet is damaged (no images in it): {again('Tiny-ImageNet')}")
    return Parts(train, test, classes)


def load_imagenet100(name: str, size: int, data_root: Path | None, device: torch.device) -> tuple[ImageSet, str]:
    """ImageNet-100 from ImageNet's train and val folders, which may hold the other 900 classes, too."""
    root = imagenet_folder(data_root)
    classes = tuple(sorted(IMAGENET_100))
    files = []
    for place in ("train", "val"):
        missing = [label for label in classes if not (root / place / label).is_dir()]
        if missing:
            raise UserError(f"{root / place} has no folder {missing[0]}, one of ImageNet-100's {len(classes)} classes")
        files.append({label: images_of(root, f"{place}/{label}") for label in classes})
    train, test = (part(found, classes) for found in files)
    images, digest = from_files(Parts(train, test, classes), decode.folder_reader(root), {}, size, device)
    return replace(images, mean=IMAGENET_MEAN, std=IMAGENET_STD), digest


def imagenet_folder(data_root: Path | None) -> Path:
    """The folder in the data root that holds ImageNet's train and val folders."""
    for name in ("imagenet-100", "imagenet100", "imagenet", "ImageNet", "ILSVRC2012", "."):
        if data_root and (data_root / name / "train" / IMAGENET_100[0]).is_dir():
            return data_root / name
    where = f"{data_root} has no imagenet/train/{IMAGENET_100[0]}" if data_root else "no data root is given"
    fix = f"get ImageNet from {DATASETS['ImageNet-100'].url} and name the folder of its train and val: --data-root"
    raise UserError(f"{where}: {fix} (or CONTRASTBENCH_DATA)")


LOADERS: dict[str, Callable[[str, int, Path | None, torch.device], tuple[ImageSet, str]]] = {
    "digits": load_embedded,
    "CIFAR-10": load_cifar,
    "CIFAR-100": load_cifar,
    "STL-10": load_stl,
    "Tiny-ImageNet": load_tiny,
    "ImageNet-100": load_imagenet100,
}
