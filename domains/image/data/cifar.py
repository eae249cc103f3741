"""CIFAR: 32 x 32 photographs, from the binary version or from losslessly recoded pictures.

However they are kept, they stand in one order, by class and then by the sha256 of their pixels: the
same content gives the same numbers.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.archives import Members, again
from contrastbench.domains.image.data.binaries import below, class_names, exactly
from contrastbench.domains.image.data.datasets import DATASETS, PICTURES
from contrastbench.domains.image.data.decode import ReadBytes
from contrastbench.domains.image.data.images import ImageSet, on_device
from contrastbench.domains.own import files_below
from contrastbench.domains.reading import reading
from contrastbench.losses.errors import UserError

SMALL, FEW_SHOT = "CIFAR-10-5k", "FC100"
# of FC100's test part: aquatic mammals, insects, medium-sized mammals, people
TESTED = """
beaver dolphin otter seal whale bee beetle butterfly caterpillar cockroach fox porcupine possum
raccoon skunk baby boy girl man woman
"""
SMALL_CLASS = {"train": 500, "test": 100}  # the first of each class
Samples = dict[str, tuple[Tensor, Tensor]]  # (N, 3, 32, 32) uint8 and classes of each part


def load_cifar(
    name: str, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """CIFAR-10, CIFAR-100 or the first 500 + 100 of each class of CIFAR-10.

    Raises:
        UserError: a file is damaged, or holds something else.
    """
    kept = pictures(data_root) if name != "CIFAR-100" else None
    samples, classes = from_pictures(*kept) if kept else from_binary(name, data_root)
    samples = {part: in_order(*samples[part]) for part in ("train", "test")}
    images, digest = on_device(samples, classes, device)
    if (expected := DATASETS[name].content) and digest != expected:
        raise UserError(f"the files kept as {name} have other content: {again(name)}")
    if name != SMALL:
        return images, digest
    few = {part: first(*samples[part], SMALL_CLASS[part]) for part in samples}
    return on_device(few, classes, device)


def load_few_shot(
    name: str, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """FC100: CIFAR-100 by classes; both parts of twenty are tested, those of the others train."""
    samples, classes = from_binary("CIFAR-100", data_root)
    pixels, labels = (torch.cat(parts) for parts in zip(*samples.values(), strict=True))
    with reading("CIFAR-100", again("CIFAR-100")):
        numbers = [classes.index(word) for word in TESTED.split()]
    tested = torch.isin(labels, torch.tensor(numbers))
    parts = {"train": ~tested, "test": tested}
    return on_device(
        {part: in_order(pixels[rows], labels[rows]) for part, rows in parts.items()},
        classes,
        device,
    )


def in_order(pixels: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The samples by class, and each class by the sha256 of its pixels."""
    hashes = [sha256(image.numpy().data).digest() for image in pixels.contiguous()]
    keys = list(zip(labels.tolist(), hashes, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return pixels[order], labels[order]


def first(pixels: Tensor, labels: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the first samples of each class; classes stand together."""
    starts = torch.searchsorted(labels, labels.unique())
    rows = (starts[:, None] + torch.arange(count)).flatten()
    return pixels[rows], labels[rows]


def from_binary(name: str, data_root: Path | None) -> tuple[Samples, Sequence[str]]:
    """The binary version, found or downloaded: no pickles."""
    hundred = name == "CIFAR-100"
    files = ("train.bin",) if hundred else tuple(f"data_batch_{k}.bin" for k in range(1, 6))
    test, words = (
        ("test.bin", "fine_label_names.txt") if hundred else ("test_batch.bin", "batches.meta.txt")
    )
    folder = "cifar-100-binary" if hundred else "cifar-10-batches-bin"
    raw = Members(name, folder, data_root).read((*files, test, words))
    train = records(name, b"".join(raw[file] for file in files), 50_000, 1 + hundred)
    samples = {"train": train, "test": records(name, raw[test], 10_000, 1 + hundred)}
    return samples, class_names(name, raw[words])


def records(name: str, raw: bytes, count: int, labels: int) -> tuple[Tensor, Tensor]:
    """Pixels and classes of CIFAR's records; the last of a record's labels is the class."""
    table = exactly(name, raw, (count, labels + 3 * 32 * 32))
    classes = below(name, table[:, labels - 1].long(), 10**labels)
    return table[:, labels:].reshape(-1, 3, 32, 32), classes


def pictures(data_root: Path | None) -> tuple[Sequence[str], ReadBytes] | None:
    """Names and reader of CIFAR-10's pictures, as PART/CLASS/FILE in a zip or a folder."""
    for path in (data_root / name for name in PICTURES if data_root):
        if path.is_file():
            return decode.zip_names(path, decode.REPLACE), decode.zip_reader(path, decode.REPLACE)
        if (path / "train").is_dir():
            return files_below(path), decode.folder_reader(path)
    return None


def from_pictures(names: Sequence[str], read: ReadBytes) -> tuple[Samples, Sequence[str]]:
    """Read pictures whose folders name their part and class."""
    paths = [PurePosixPath(name) for name in names]
    found = [
        path for path in paths if path.suffix.lower() in decode.SUFFIXES and len(path.parts) > 2
    ]
    classes = sorted({path.parent.name for path in found})
    samples = {}
    for part in ("train", "test"):
        mine = [path for path in found if path.parts[-3] == part]
        labels = torch.tensor([classes.index(path.parent.name) for path in mine])
        samples[part] = (pixels([str(path) for path in mine], read), labels)
    return samples, classes


def pixels(names: Sequence[str], read: ReadBytes) -> Tensor:
    """(N, 3, 32, 32) uint8 of all pictures.

    Raises:
        UserError: there is none, or one is damaged or of another size.
    """

    def one(name: str) -> Tensor:
        image = decode.decode(name, read(name), None)
        if image.shape != (3, 32, 32):
            raise UserError(f"{name} does not have 32 x 32 pixels: {decode.REPLACE}")
        return image

    found = list(decode.in_threads(one, names, "reading pictures"))
    return torch.stack(found) if found else torch.empty(0, 3, 32, 32, dtype=torch.uint8)
