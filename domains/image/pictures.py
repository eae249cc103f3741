"""Pictures that people have, as a network takes them: each by itself, whatever stands beside it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.files import MAX_KEPT_SIDE
from contrastbench.domains.image.data.own import CHANNELS
from contrastbench.domains.image.preprocessing import IMAGES_AT_ONCE
from contrastbench.domains.image.views.transforms import evaluation_view, stored_size
from contrastbench.domains.own import files_below
from contrastbench.domains.reading import contents
from contrastbench.errors import UserError

ARRAY_SHAPES = "(N, height, width, 3) or (N, 3, height, width); 1 in place of 3 for grey"


def picture_batches(data: Any, size: int) -> Iterator[Tensor]:
    """Yield batches of (n, 3, size, size) pictures in [0, 1].

    Args:
        data: an array or tensor of pictures, a list of PIL images or of image files, or a folder.
        size: pixels a side that the network sees.

    Raises:
        UserError: there is no picture, or one cannot be read.
    """
    if isinstance(data, str | Path):
        data = [Path(data) / name for name in image_files(Path(data))]
    first = data[0] if isinstance(data, Sequence) and data else None
    if isinstance(first, str | Path):
        return of_files([str(path) for path in data], size)
    return of_images(data, size) if isinstance(first, Image.Image) else of_array(data, size)


def of_files(names: Sequence[str], size: int) -> Iterator[Tensor]:
    """Yield the pictures of image files."""

    def work(name: str) -> Tensor:
        return of_image(decode.open_rgb(name, contents(Path(name))), size)

    tensors: list[Tensor] = []
    for tensor in decode.in_threads(work, names, "embedding images"):
        tensors.append(tensor)
        if len(tensors) == IMAGES_AT_ONCE:
            yield torch.stack(tensors)
            tensors = []
    if tensors:
        yield torch.stack(tensors)


def image_files(root: Path) -> list[str]:
    """Return the names of all image files in a folder and in its folders, in order.

    Raises:
        UserError: there is no such folder, or no image in it.
    """
    if not root.is_dir():
        raise UserError(f"no folder {root}: give that of image files, or a list of the files")
    found = files_below(root)
    names = [name for name in found if Path(name).suffix.lower() in decode.IMAGE_SUFFIXES]
    if not names:
        raise UserError(f"{root} has no image files: give a folder with some")
    return names


def of_images(images: Sequence[Image.Image], size: int) -> Iterator[Tensor]:
    """Yield PIL images in batches."""
    for start in range(0, len(images), IMAGES_AT_ONCE):
        part = images[start : start + IMAGES_AT_ONCE]
        yield torch.stack([of_image(decode.to_rgb(image), size) for image in part])


def of_image(image: Image.Image, size: int) -> Tensor:
    """(3, size, size) in [0, 1] of an image of three colours, reduced as those of folders are."""
    if max(image.size) > max(MAX_KEPT_SIDE, size):
        image = decode.centre_crop(image, stored_size(size))
    return evaluation_view(decode.to_tensor(image)[None], size)[0]


def of_array(data: Any, size: int) -> Iterator[Tensor]:
    """Yield the pictures of an array in batches."""
    pixels = as_pixels(data)
    for part in pixels.split(IMAGES_AT_ONCE):
        if max(part.shape[2:]) > max(MAX_KEPT_SIDE, size):
            large = [Image.fromarray(x) for x in part.permute(0, 2, 3, 1).numpy()]
            yield from of_images(large, size)
        else:
            yield evaluation_view(part, size)


def of_numpy(array: "np.ndarray[Any, Any]") -> Tensor:
    """Return an array as a tensor; one of no numbers has no pictures."""
    return torch.from_numpy(array) if array.dtype.kind in "biuf" else torch.empty(0)


def as_pixels(data: Any) -> Tensor:
    """(N, 3, height, width) uint8 of an array of pictures.

    Raises:
        UserError: it has another shape, or floats outside of [0, 1].
    """
    x = data.detach().cpu() if isinstance(data, Tensor) else of_numpy(np.array(data))
    if x.ndim != 4 or not len(x) or not {x.shape[1], x.shape[3]} & {*CHANNELS}:
        shape = tuple(x.shape)
        raise UserError(f"an array of shape {shape} holds no pictures: give {ARRAY_SHAPES}")
    if x.is_floating_point():
        low, high = (float(extreme) for extreme in x.aminmax())
        if not 0 <= low <= high <= 1:
            raise UserError(
                f"pictures of floats lie from {low:.3g} to {high:.3g}: "
                "give uint8, or floats from 0 to 1 that are not normalised"
            )
        x = (x * 255).round()
    elif x.dtype != torch.uint8:
        raise UserError(f"pictures are {x.dtype}: give uint8, or floats from 0 to 1")
    if x.shape[3] in CHANNELS:
        x = x.permute(0, 3, 1, 2)
    return x.to(torch.uint8).expand(-1, 3, -1, -1).contiguous()
