"""What a set of images holds as it was read."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import torch

from contrastbench.domains.image.data.files import TESTED_TWICE
from contrastbench.domains.image.data.images import Images, Split
from contrastbench.domains.report import (
    Counted,
    DataReport,
    Twins,
    class_counts,
    class_doubts,
    count_twins,
    test_of,
)

FLAT = 4  # levels of 256; fewer are no picture


def image_report(
    splits: Mapping[str, Split],
    classes: Sequence[str],
    notes: Mapping[str, Any],
    own: bool,
    more: Mapping[str, Any],
) -> DataReport:
    """Return sizes, equal images, and those that are empty.

    Args:
        splits: its parts, training first, test last.
        classes: their names.
        notes: on reading; grey or large images of a declared set are what is known of it.
        own: whether nobody has checked the sizes.
        more: notes on the training.
    """
    labels = torch.cat([part.labels for part in splits.values()]).tolist()
    sizes = {name: len(part) for name, part in splits.items()}
    twins = pixel_twins([*splits.values()], sizes, labels)
    flat = one_colour(splits)
    doubts = {"images of hardly more than one colour": flat} if flat else {}
    return DataReport(
        "images",
        sizes,
        class_counts(classes, labels),
        pixels(splits),
        twins,
        {note: value for note, value in notes.items() if said(note, own, twins)} | dict(more),
        doubts | class_doubts(classes),
        own,
    )


def said(note: str, own: bool, twins: Twins | None) -> bool:
    """Return whether people are told of a note; equal images are counted by pixels if they can."""
    return twins is None if note == TESTED_TWICE else own


def pixels(splits: Mapping[str, Split]) -> dict[str, int]:
    """Return height and width of images that are decoded to one size."""
    sides = {part.pixels.shape[2:] for part in splits.values() if isinstance(part, Images)}
    return dict(zip(("height", "width"), *sides, strict=True)) if len(sides) == 1 else {}


def pixel_twins(
    splits: Sequence[Split], sizes: Mapping[str, int], labels: Sequence[int]
) -> Twins | None:
    """Count images of equal pixels, unless some are decoded only when they are used."""
    held = [part for part in splits if isinstance(part, Images)]
    if len(held) < len(splits):
        return None
    return count_twins((key for part in held for key in keys(part)), labels, [test_of(sizes)])


def keys(images: Images) -> Iterator[bytes]:
    """Yield a digest of each image."""
    for pixels in images.pixels.split(1024):
        yield from (blake2b(image).digest() for image in pixels.contiguous().cpu().numpy())


def one_colour(splits: Mapping[str, Split]) -> Counted | None:
    """Count images whose pixels are nearly equal; None: there is none."""
    flat = [
        f"image {row} of {name}"
        for name, part in splits.items()
        if isinstance(part, Images)
        for row in torch.nonzero(is_flat(part)).flatten().tolist()
    ]
    return Counted(len(flat), flat[0]) if flat else None


def is_flat(images: Images) -> torch.Tensor:
    """(N,) whether all pixels of an image are nearly of one colour, as masks of 0 and 1 are."""
    colours = images.pixels.flatten(2)
    return (colours.amax(2) - colours.amin(2) < FLAT).all(dim=1)
