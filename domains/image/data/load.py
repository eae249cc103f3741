"""Sets of images by name: declared ones, and anybody's own."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch

from contrastbench.domains import download
from contrastbench.domains import own as owned
from contrastbench.domains.declaration import reader_of
from contrastbench.domains.image.data import own
from contrastbench.domains.image.data.datasets import DATASETS, SOURCES, ImageDataset
from contrastbench.domains.image.data.images import LoadedImages, Request
from contrastbench.domains.reading import reading, refuse
from contrastbench.errors import UserError

ImageReader = Callable[[ImageDataset, Request], LoadedImages]


def load_images(
    dataset: str, size: int, data_root: Path | None, device: torch.device, whole: bool = False
) -> LoadedImages:
    """A set of images by name and the sha256 of its content.

    Args:
        dataset: a declared set, or one's own: `folder:PATH` (absolute, from here, or from the data
            root) with train/CLASS/FILE and test/CLASS/FILE (or val), or with CLASS/FILE and a
            seeded fifth of each class as test; `npz:FILE`.
        size: of the views in pixels. Images that all have one size of at most 96 pixels keep it;
            the embedded digits are enlarged to `size`; others are stored with `stored_size(size)`
            pixels a side.
        data_root: a folder that already holds the files.
        device: where pixels and labels go.
        whole: crops are of whole pictures, decoded at each step, where stored ones were cut.

    Raises:
        UserError: unknown name, no file and no network, or a file that is no image.
    """
    return ADAPTER.read(dataset, data_root, Request(size, data_root, device, whole))


@lru_cache(maxsize=1)
def load_declared(dataset: str, data_root: Path | None, asked: Request) -> LoadedImages:
    """A declared set; the last one stays in memory for the next seed.

    Raises:
        UserError: its files are not there, are damaged, or hold something else.
    """
    about = DATASETS[dataset]
    refuse(dataset, (asked.groups or (), " has no groups: leave --recipe groups out"))
    reader: ImageReader = reader_of(__package__, about)
    path = download.local_file(about, data_root) if about.url else None
    with reading(path or dataset, about.again):
        images, digest = reader(about, asked)
    if about.content not in ("", digest):
        place = f" in {path}" * (not about.sha256)  # of others an unpacked folder may be read
        raise UserError(f"the files kept as {dataset}{place} have other content: {about.again}")
    return images, digest


ADAPTER = owned.Adapter(
    *("image", DATASETS, SOURCES), lambda kind, *asked: own.READERS[kind](*asked), load_declared
)
