"""What a set of images holds as it was read."""

from collections.abc import Mapping, Sequence
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
    of_test,
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
    flat, told = one_colour(splits), {*notes} - {TESTED_TWICE} if own else set()
    told |= set() if twins else {TESTED_TWICE}  # equal files, where pixels cannot be compared
    doubts = {"images of hardly more than one colour": flat} if flat else {}
    return DataReport(
        "images",
        sizes,
        class_counts(classes, labels),
        pixels(splits) if own else {},  # declared ones are resized
        twins,
        {note: value for note, value in notes.items() if note in told} | dict(more),
        doubts | class_doubts(classes),
        own,
    )


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
    blocks = (pixels.cpu() for part in held for pixels in part.pixels.split(1024))
    keys = (blake2b(image).digest() for pixels in blocks for image in pixels.contiguous().numpy())
    return count_twins(keys, labels, [of_test(sizes)])


def one_colour(splits: Mapping[str, Split]) -> Counted | None:
    """Count images whose pixels are nearly equal, as in masks of 0 and 1; None: there is none."""
    flat = [
        f"image {row[0]} of {name}"
        for name, part in splits.items()
        if isinstance(part, Images)
        for colours in [part.pixels.flatten(2)]
        for row in torch.nonzero((colours.amax(2) - colours.amin(2) < FLAT).all(dim=1)).tolist()
    ]
    return Counted(len(flat), flat[0]) if flat else None
