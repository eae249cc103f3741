"""What a set of images holds as it was read."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import torch
from torch.nn.functional import adaptive_avg_pool2d

from contrastbench.domains.image.data.images import TESTED_TWICE, Images, Split
from contrastbench.domains.report import Rules, found_by
from contrastbench.domains.samples import Counted, Samples
from contrastbench.losses.contrast import unit

FLAT = 4  # levels of 256; fewer are no picture
MOST_COMPARED = 10_000  # images, each with each
THUMB, LIKE = 8, 0.995  # pixels a side of a small picture; from which correlation two are alike
GREY = torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)  # what Pillow makes of colours


def image_samples(
    splits: Mapping[str, Split],
    classes: Sequence[str],
    notes: Mapping[str, Any],
    own: bool,
    more: Mapping[str, Any],
) -> Samples:
    """Return the images of all parts, training first and test last, and those that are empty.

    Notes on grey or large images of a declared set are what is known of it, and left out.
    """
    held = [part for part in splits.values() if isinstance(part, Images)]
    whole = len(held) == len(splits)  # none is decoded only when it is used
    compared = own and whole and sum(map(len, held)) <= MOST_COMPARED
    told = {*notes} - {TESTED_TWICE} if own else set()
    told |= set() if whole else {TESTED_TWICE}  # equal files, where pixels cannot be compared
    sides = {part.pixels.shape[2:] for part in held} if own else {}  # declared ones are resized
    return Samples(
        "images",
        {name: len(part) for name, part in splits.items()},
        torch.cat([part.labels for part in splits.values()]).tolist(),
        classes,
        groups=[group for part in splits.values() for group in part.groups],
        keys=(lambda: pixel_keys(held)) if whole else None,
        near=(lambda: small_keys(held)) if compared else None,
        features=dict(zip(("height", "width"), *sides, strict=True)) if len(sides) == 1 else {},
        notes={note: value for note, value in notes.items() if note in told} | dict(more),
        doubts=found_by(DOUBTS, splits),
        own=own,
    )


def pixel_keys(parts: Sequence[Images]) -> Iterator[bytes]:
    blocks = (pixels.cpu() for part in parts for pixels in part.pixels.split(1024))
    yield from (blake2b(x).digest() for block in blocks for x in block.contiguous().numpy())


def small_keys(parts: Sequence[Images]) -> list[int]:
    """Return the same number for images that are nearly equal when small and grey, or mirrored.

    A key is the number of the first image whose brightness correlates by more than LIKE.
    """
    blocks = (block.cpu().float() for part in parts for block in part.pixels.split(1024))
    small = torch.cat([adaptive_avg_pool2d((block * GREY).sum(1), THUMB) for block in blocks])
    small = small - small.mean((1, 2), keepdim=True)
    flat = small.flatten(1).std(1) < FLAT
    mirrored, small = (unit(x.flatten(1)) for x in (small.flip(2), small))
    like = (torch.maximum(x @ small.T, x @ mirrored.T) > LIKE for x in small.split(1024))
    first = torch.cat([some.int().argmax(1) for some in like])
    own = torch.arange(len(first))
    keys: list[int] = torch.where(flat, own, first[first]).tolist()
    return keys


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
