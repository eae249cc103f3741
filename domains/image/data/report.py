"""What a set of images holds as it was read."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import torch

from contrastbench.domains.image.data.files import TESTED_TWICE
from contrastbench.domains.image.data.images import Images, Split
from contrastbench.domains.report import Rules, found_by
from contrastbench.domains.samples import Counted, Samples

FLAT = 4  # levels of 256; fewer are no picture


def image_samples(
    splits: Mapping[str, Split],
    classes: Sequence[str],
    notes: Mapping[str, Any],
    own: bool,
    more: Mapping[str, Any],
) -> Samples:
    """Return the images of all parts, and those that are empty.

    Args:
        splits: its parts, training first, test last.
        classes: their names.
        notes: on reading; grey or large images of a declared set are what is known of it.
        own: whether nobody has checked the sizes.
        more: notes on the training.
    """
    held = [part for part in splits.values() if isinstance(part, Images)]
    whole = len(held) == len(splits)  # none is decoded only when it is used
    told = {*notes} - {TESTED_TWICE} if own else set()
    told |= set() if whole else {TESTED_TWICE}  # equal files, where pixels cannot be compared
    sides = {part.pixels.shape[2:] for part in held} if own else {}  # declared ones are resized
    return Samples(
        "images",
        {name: len(part) for name, part in splits.items()},
        torch.cat([part.labels for part in splits.values()]).tolist(),
        classes,
        keys=(lambda: pixel_keys(held)) if whole else None,
        features=dict(zip(("height", "width"), *sides, strict=True)) if len(sides) == 1 else {},
        notes={note: value for note, value in notes.items() if note in told} | dict(more),
        doubts=found_by(DOUBTS, splits),
        own=own,
    )


def pixel_keys(parts: Sequence[Images]) -> Iterator[bytes]:
    """Yield a digest of the pixels of each image."""
    blocks = (pixels.cpu() for part in parts for pixels in part.pixels.split(1024))
    yield from (blake2b(x).digest() for block in blocks for x in block.contiguous().numpy())


def one_colour(splits: Mapping[str, Split]) -> Counted:
    """Count images whose pixels are nearly equal, as in masks of 0 and 1."""
    flat = [
        f"image {row[0]} of {name}"
        for name, part in splits.items()
        if isinstance(part, Images)
        for colours in [part.pixels.flatten(2)]
        for row in torch.nonzero((colours.amax(2) - colours.amin(2) < FLAT).all(dim=1)).tolist()
    ]
    return Counted.of(flat)


DOUBTS: Rules[Mapping[str, Split]] = {"images of hardly more than one colour": one_colour}
