"""Pictures that people have, as a network takes them: each by itself, whatever stands beside it."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.files import MAX_KEPT_SIDE
from contrastbench.domains.image.preprocessing import IMAGES_AT_ONCE
from contrastbench.domains.image.views.transforms import evaluation_view, stored_size
from contrastbench.domains.own import files_below
from contrastbench.domains.reading import contents, refuse
from contrastbench.errors import UserError


def picture_batches(data: Any, size: int) -> Iterator[Tensor]:
    """Yield batches of (n, 3, size, size) pictures in [0, 1].

    They are an array, a list of PIL images or of image files, or a folder.
    """
    if isinstance(data, str | Path):
        data = [Path(data) / name for name in image_files(Path(data))]
    first = data[0] if isinstance(data, Sequence) and data else None
    if isinstance(first, str | Path):
        files = [str(path) for path in data]
        images = decode.in_threads(
            lambda name: of_image(decode.open_rgb(name, contents(Path(name))), size),
            files,
            "embedding images",
        )
    else:
        pictures = data if isinstance(first, Image.Image) else images_of_array(data)
        images = (of_image(decode.to_rgb(picture), size) for picture in pictures)
    while batch := [*islice(images, IMAGES_AT_ONCE)]:
        yield torch.stack(batch)


def image_files(root: Path) -> list[str]:
    if not root.is_dir():
        raise UserError(f"no folder {root}: give that of image files, or a list of the files")
    there = files_below(root)
    names = [name for name in there if Path(name).suffix.lower() in decode.IMAGE_SUFFIXES]
    refuse(root, (not names, " has no image files: give a folder with some"))
    return names


def of_image(image: Image.Image, size: int) -> Tensor:
    """(3, size, size) in [0, 1] of an image of three colours, reduced as those of folders are."""
    if max(image.size) > max(MAX_KEPT_SIDE, size):
        image = decode.centre_crop(image, stored_size(size))
    return evaluation_view(decode.to_tensor(image)[None], size)[0]


def images_of_array(data: Any) -> list[Image.Image]:
    array = np.asarray(data)
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[3] != 3:
        kind = f"an array of {array.dtype} and shape {array.shape} holds no pictures"
        raise UserError(f"{kind}: give uint8 of shape (N, height, width, 3)")
    return [Image.fromarray(picture) for picture in array]
