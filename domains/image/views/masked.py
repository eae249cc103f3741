"""RandAugment without sorting images by operation, for devices other than the CPU.

There a launch costs more than arithmetic, and how many images an operation has is known only to
who waits for the device. So in each layer every image goes through all operations at once: each is
new = other + factor * (old - other), with numbers that make it nothing but the image's own one.
"""

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from contrastbench.domains.image.views.colour import constant, index_range
from contrastbench.domains.image.views.randaugment import (
    BLENDS,
    MAX_MAGNITUDE,
    MOVES,
    OPERATIONS,
    POINT_OPERATIONS,
    SLACK,
    STATISTICS,
    Draws,
    luma,
    matrices,
    point_tables,
)

TAPS = 1 << 28  # neighbours that are added up at once, 24 bytes each
OPERATION_FIELDS = (
    "factor",
    "by_share",
    "Color",
    "Contrast",
    "Sharpness",
    "table",
    "move",
    "step",
    "spread",
)


def operation_numbers(name: str | None) -> tuple[float, ...]:
    """Return the numbers that describe an operation, by `OPERATION_FIELDS`."""
    lone = [float(name == title) for title in OPERATION_FIELDS[2:5]]
    table, move = float(name in (*POINT_OPERATIONS, *STATISTICS)), float(name in MOVES)
    factor, by_share = (0.1, 1.8) if name in BLENDS else (1.0 - table - move, 0.0)
    step = 255.0 if name == "Equalize" else math.inf  # pixels that make one of its steps
    spread = 1.0 if name == "AutoContrast" else math.inf  # of values, from which on it stretches
    return (factor, by_share, *lone, table, move, step, spread)


# a row for each column
BY_OPERATION = tuple(zip(*map(operation_numbers, (*OPERATIONS, None)), strict=True))


def apply(images: Tensor, draws: Draws, fill: tuple[float, float, float]) -> Tensor:
    """Augment like `randaugment.apply`; sums of resampled neighbours may round differently."""
    n, _, height, width = images.shape
    layers = len(draws.operation)
    if n > 1 and 16 * layers * n * height * width > TAPS:
        halves = (x.tensor_split(2, dim=1) for x in vars(draws).values())
        parts = zip(images.tensor_split(2), zip(*halves, strict=True), strict=True)
        return torch.cat([apply(x, Draws(*half), fill) for x, half in parts])
    share = draws.level / MAX_MAGNITUDE
    of = constant(BY_OPERATION, images.device)[:, draws.operation].view(
        len(OPERATION_FIELDS), layers, n, 1
    )
    by_name = dict(
        zip(OPERATION_FIELDS, of.unsqueeze(-1).unsqueeze(-1), strict=True)
    )  # (layers, n, 1, 1, 1)
    by_name["factor"] = torch.addcmul(
        by_name["factor"], by_name["by_share"], share.view(layers, n, 1, 1, 1)
    )
    matrix = matrices(draws.operation, share * draws.sign, images).flatten(0, 1)
    taps = [
        x.unflatten(0, (layers, n)) for x in neighbour_pixels(matrix, draws.cubic, height, width)
    ]
    tables = point_tables(draws.operation, share)
    colour = constant(tuple(round(255 * part) for part in fill), images.device).view(3, 1, 1)
    for layer in range(layers):
        of_layer = {name: x[layer] for name, x in by_name.items()}
        place, weight, inside = (x[layer] for x in taps)
        moved = torch.where(inside, resample(images, place, weight), colour)
        mapped = look_up(images, tables[layer].unsqueeze(1), of_layer)
        images = combine(images, moved, mapped, of_layer)
    return images


def combine(images: Tensor, moved: Tensor, mapped: Tensor, of: dict[str, Tensor]) -> Tensor:
    """Each image's own operation.

    Args:
        images: (n, 3, H, W).
        moved: the images resampled.
        mapped: the images with values of a table.
        of: by `OPERATION_FIELDS`, (n, 1, 1, 1).
    """
    gray = luma(images)
    mean = gray.mean((2, 3), keepdim=True).add_(0.5).floor_()
    other = (gray * of["Color"]).addcmul_(mean, of["Contrast"])
    other = other.addcmul(smoothed(images), of["Sharpness"])
    other.addcmul_(mapped, of["table"]).addcmul_(moved, of["move"])
    return other.lerp_(images, of["factor"]).add_(SLACK).floor_().clamp_(0, 255)


def neighbour_pixels(
    matrix: Tensor, cubic: Tensor, height: int, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The 16 old pixels around each new one's source: numbers, weights; and if it is inside.

    Args:
        matrix: (n, 2, 3) of `randaugment.matrices`.
        cubic: n bools: Keys's weights with a = -1, not the bilinear ones of the inner four.
        height: of the images.
        width: of the images.
    """
    ends = ((width, height), (width / 2, height / 2), (width - 1, height - 1))
    sides, half, last = constant(ends, matrix.device).view(3, 2, 1, 1)
    x, y = (index_range(round(2 * end), matrix.device, 0.5 - end) for end in ends[1])
    by_x, by_y, shift = matrix.view(-1, 2, 3, 1, 1).unbind(2)
    source = torch.addcmul(torch.addcmul(shift + half, by_y, y[:, None]), by_x, x)
    inside = ((source >= 0) & (source < sides)).all(dim=1, keepdim=True)
    before = source.sub_(0.5).floor()
    right = source - before
    left = 1 - right
    bend = left * right * (cubic.view(-1, 1, 1, 1) * -1.0)
    near = torch.stack((left, right), dim=2)
    far = near * bend.unsqueeze(2)
    weights = torch.cat((near - far, far), dim=2)
    steps = constant((0, 1, -1, 2), matrix.device).view(4, 1, 1)
    taps = (before.unsqueeze(2) + steps).clamp_(min=0).minimum(last.unsqueeze(1))
    lines = torch.add(taps[:, 0, None], taps[:, 1, :, None], alpha=width).long()
    return lines.flatten(1), (weights[:, 1, :, None] * weights[:, 0, None]).flatten(1), inside


def resample(images: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """Each pixel from its 16 old ones.

    Args:
        images: (n, 3, H, W).
        places: (n, 16 H W) numbers of pixels.
        weights: likewise.
    """
    n, colours, height, width = images.shape
    old = images.flatten(2).gather(2, places.unsqueeze(1).expand(n, colours, -1))
    new = old.mul_(weights.unsqueeze(1)).view(n, colours, 16, -1).sum(2)
    return new.view(n, colours, height, width)


def look_up(images: Tensor, table: Tensor, of: dict[str, Tensor]) -> Tensor:
    """Values of the image's table, or of one that makes its histogram flat or wide.

    Args:
        images: (n, 3, H, W).
        table: (n, 1, 256).
        of: by `OPERATION_FIELDS`, (n, 1, 1, 1).
    """
    values = images.flatten(2)
    low, high = torch.aminmax(values, dim=2, keepdim=True)
    spread = high - low
    wide = (index_range(256, images.device) - low).mul_(255).div_(spread)
    table = wide.where(spread >= of["spread"].squeeze(-1), table)
    bins = values.long()
    below = bins.new_zeros(*bins.shape[:2], 257)  # pixels of lesser values: sums of whole numbers
    one = constant((1,), bins.device, torch.long)  # repeat on a GPU, those of others need not
    below[..., 1:].scatter_add_(2, bins, one.expand(bins.shape))
    below = below.cumsum(2)
    step = below.gather(2, high.long()).div(of["step"].squeeze(-1), rounding_mode="floor")
    flat = below[..., :256] + step.div(2, rounding_mode="floor")
    flat = flat.div_(step, rounding_mode="floor").clamp_(max=255)
    return flat.where(step > 0, table).gather(2, bins).view(images.shape)


def smoothed(images: Tensor) -> Tensor:
    """Pillow's SMOOTH, as `randaugment.smoothed`, in whole numbers that any precision holds."""
    height, width = images.shape[-2:]
    kernel = constant(((1, 1, 1), (1, 5, 1), (1, 1, 1)), images.device).view(1, 1, 3, 3)
    half = constant((6.5,), images.device)
    total = conv2d(images.reshape(-1, 1, height, width), kernel, half, padding=1)
    whole = total.div_(13, rounding_mode="floor").view(images.shape)
    return whole.where(inside_border(height, width, images.device), images)


@cache
def inside_border(height: int, width: int, device: torch.device) -> Tensor:
    """(H, W) bool: all pixels but those of the border."""
    mask = torch.zeros(height, width, dtype=torch.bool)
    mask[1:-1, 1:-1] = True
    return mask.to(device)
