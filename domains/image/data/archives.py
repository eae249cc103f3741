"""Archives of declared sets: found or downloaded, and read without extracting them."""

import gzip
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import fetch_file
from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.reading import UNPACKED, doubles, reading, refuse

MAX_UNPACKED_BYTES = 4 << 30  # bytes of all members of an archive; STL-10 has 2.9e9


def read_members(
    about: ImageDataset, folder: str, data_root: Path | None, names: Sequence[str]
) -> dict[str, bytes]:
    root = data_root / folder if data_root else None
    if root and root.is_dir():
        return {name: decode.folder_reader(root)(name) for name in names}
    path = archive(about, data_root)
    with reading(path, about.again):
        files = list(members(path, lambda m: m.parent.name == folder and m.name in names))
        if several := doubles(name for name, _ in files):
            raise ValueError(f"two members are named {several[0]}")
    contents = dict(files)
    missing = [f"{folder}/{name}" for name in names if name not in contents]
    refuse(path, (missing, f" has no {{}}: {about.again}"))
    return contents


def members(path: Path, wanted: Callable[[Path], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the files that are wanted of an archive; its checksum is verified at the end."""
    with BoundedArchive(path) as unpacked:
        with tarfile.open(fileobj=unpacked, mode="r|") as tar:
            for member in tar:
                if member.size > UNPACKED:  # passing over what is not there takes for ever
                    raise ValueError(f"{member.name} is too large")
                place = Path(member.name)
                if wanted(place):
                    file = tar.extractfile(member)
                    if file is not None:
                        yield place.name, file.read()
        while unpacked.read(2**20):
            pass


class BoundedArchive(gzip.GzipFile):
    """Bound the size that an archive may unpack to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = MAX_UNPACKED_BYTES

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES / 2**30:.3g} GiB")
        return data


def archive(about: Dataset, data_root: Path | None) -> Path:
    here = data_root / about.file if data_root else None
    return here if here and here.is_file() else fetch_file(about)
