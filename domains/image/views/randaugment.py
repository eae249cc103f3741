"""RandAugment (Cubuk et al. 2020) as timm has it, on batches, each image with draws of its own.

RényiCL's hard views are timm's (appendix B.3; its released code has `rand-n2-m10-mstd0.5`), which
differs from the paper and from torchvision: 15 operations, with Invert and SolarizeAdd and without
an identity, each left out half of the time, magnitudes that are normal around m with deviation 0.5,
and levels of its own. At m = 5 brightness, contrast, colour and sharpness hardly change; Posterize
and Solarize do the less the larger m is. Resampling is bilinear or bicubic, whichever is drawn, and
pixels from outside of an image have the set's mean colour.

Pixels are whole numbers up to 255, held as floats, and cut as Pillow cuts them. Operations of one
kind are done together, so that a layer has three passes: resampling, tables of the 256 values, and
blends with another image.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, grid_sample, pad

from contrastbench.domains.image.views.colour import broadcast_per_image, constant, index_range
from contrastbench.domains.model import unwaited
from contrastbench.domains.random import on_host

MAX_MAGNITUDE = 10.0  # magnitude
DEVIATION = 0.5  # of magnitudes
RATE = 0.5  # of drawn operations that are applied
MOVES = {  # shear to the side and down, shift as a share of the sides, angle, all at magnitude 10
    "ShearX": (0.3, 0.0, 0.0, 0.0, 0.0),
    "ShearY": (0.0, 0.3, 0.0, 0.0, 0.0),
    "TranslateXRel": (0.0, 0.0, 0.45, 0.0, 0.0),
    "TranslateYRel": (0.0, 0.0, 0.0, 0.45, 0.0),
    "Rotate": (0.0, 0.0, 0.0, 0.0, math.radians(30)),
}
STATISTICS = ("AutoContrast", "Equalize")
# threshold, what is added below it, bits that are kept, and from where values at the threshold and
# above are counted, down or up; each at 0 and what 10 adds
POINT_OPERATIONS = {
    "Invert": ((0, 0), (0, 0), (8, 0), (255, 0)),
    "Posterize": ((256, 0), (0, 0), (0, 4), (255, 0)),
    "Solarize": ((0, 256), (0, 0), (8, 0), (255, 0)),
    "SolarizeAdd": ((128, 0), (0, 110), (8, 0), (0, 0)),
}
UNCHANGED = ((256, 0), (0, 0), (8, 0), (255, 0))
BLENDS = ("Brightness", "Color", "Contrast", "Sharpness")  # factors 0.1 to 1.9
OPERATIONS = (*MOVES, *STATISTICS, *POINT_OPERATIONS, *BLENDS)
OPERATION_NUMBERS = {name: number for number, name in enumerate(OPERATIONS)}
NO_OPERATION = len(OPERATIONS)
# the last of those that are done together: moves, tables, blends
LAST_OF_KIND = tuple(OPERATION_NUMBERS[name] for name in ("Rotate", "SolarizeAdd", "Sharpness"))
ALL_MOVES = (*(MOVES.get(name, (0.0,) * 5) for name in OPERATIONS), (0.0,) * 5)
ALL_POINTS = (*(POINT_OPERATIONS.get(name, UNCHANGED) for name in OPERATIONS), UNCHANGED)
TAPS = 1 << 25  # neighbours that are added up at once, 8 bytes each
SLACK = 1e-3  # so that a sum of 6.9999999 is cut to 7, which it is but for rounding


@dataclass(frozen=True)
class Draws:
    """The operations on each image in each layer, all of shape (layers, N)."""

    operation: Tensor  # a number of `OPERATIONS`, or NO_OPERATION
    level: Tensor  # magnitude, 0 to 10
    sign: Tensor  # +1 or -1, for operations that have two directions
    cubic: Tensor  # bool: bicubic resampling, not bilinear


def randaugment(
    images: Tensor, n: int, magnitude: float, fill: tuple[float, float, float], rng: torch.Generator
) -> Tensor:
    """(N, 3, H, W) in [0, 1]: n operations in a row on each image, each applied half of the time.

    Magnitudes are of 10, about their mean. Pixels from outside of an image have the colour `fill`.
    """
    draws = draw_operations(n, len(images), magnitude, on_host(rng))
    return apply(images.mul(255).round_(), draws, fill).div_(255)


def draw_operations(layers: int, n: int, magnitude: float, rng: torch.Generator) -> Draws:
    noise = torch.rand(4, layers, n, generator=rng, device=rng.device)
    normal = torch.randn(layers, n, generator=rng, device=rng.device)
    operation = (noise[0] * len(OPERATIONS)).long()
    positive, cubic = noise[2:] < 0.5
    return Draws(
        operation.masked_fill_(noise[1] >= RATE, NO_OPERATION),
        normal.mul_(DEVIATION).add_(magnitude).clamp_(0, MAX_MAGNITUDE),
        positive * 2.0 - 1,
        cubic,
    )


def apply(images: Tensor, draws: Draws, fill: tuple[float, float, float]) -> Tensor:
    """Each image's operations, layer by layer; the whole numbers of the images are overwritten.

    The draws for each layer and image are on the host, which groups the images by them.
    """
    colour = constant(tuple(round(255 * part) for part in fill), images.device)
    kind = 1 + torch.bucketize(draws.operation, torch.tensor(LAST_OF_KIND))
    kind.masked_fill_((kind == 1) & draws.cubic, 0)  # bicubic moves; the bilinear ones are 1
    counts = (kind[..., None] == torch.arange(5)).sum(1).tolist()
    numbers = torch.stack([draws.operation, kind.argsort(dim=1)])
    levels = torch.stack([draws.level / MAX_MAGNITUDE, draws.sign])
    (operation, order), (share, sign) = (unwaited(x, images.device) for x in (numbers, levels))
    matrix = matrices(operation, share * sign, images)
    table, factor = point_tables(operation, share), 0.1 + 1.8 * share
    for layer, rows in enumerate(order):
        cubic, linear, mapped, blended, _ = rows.split(counts[layer])
        for moved, way in ((cubic, bicubic), (linear, bilinear)):
            if len(moved):
                images[moved] = resample(images[moved], matrix[layer, moved], way, colour)
        if len(mapped):
            chosen = operation[layer, mapped]
            images[mapped] = look_up(images[mapped], chosen, table[layer, mapped])
        if len(blended):
            chosen = operation[layer, blended]
            images[blended] = blend(images[blended], chosen, factor[layer, blended])
    return images


# Moves: where each new pixel comes from


def matrices(operation: Tensor, level: Tensor, images: Tensor) -> Tensor:
    """(..., 2, 3) from a new pixel's x, y and 1, in pixels from the middle, to the old one's x, y.

    Shears keep the upper left corner where it is, rotations are against the clock. Levels are in
    [-1, 1].
    """
    height, width = images.shape[-2:]
    moves = largest_moves(height, width, level.device)[operation] * level[..., None]
    right, down, x, y, turn = moves.unbind(-1)
    cos, sin = turn.cos(), turn.sin()
    to_x = (cos, right - sin, x + right * (height / 2))
    to_y = (down + sin, cos, y + down * (width / 2))
    return torch.stack((*to_x, *to_y), dim=-1).unflatten(-1, (2, 3))


@cache
def largest_moves(height: int, width: int, device: torch.device) -> Tensor:
    """(operations, 5) of `MOVES`, shifts in pixels; zeros for others."""
    return constant(ALL_MOVES, device) * constant((1, 1, width, height, 1), device)


def resample(
    images: Tensor, matrix: Tensor, way: Callable[[Tensor, Tensor], Tensor], fill: Tensor
) -> Tensor:
    """Each new pixel from where a matrix of `matrices` sends it, as Pillow does; else the fill."""
    n, _, height, width = images.shape
    if n > 1 and 16 * n * height * width > TAPS:
        halves = zip(images.tensor_split(2), matrix.tensor_split(2), strict=True)
        return torch.cat([resample(*half, way, fill) for half in halves])
    sides = constant((width, height), fill.device).view(2, 1, 1)
    x, y = (index_range(side, fill.device, 0.5 - side / 2) for side in (width, height))
    by_x, by_y, shift = matrix.view(n, 2, 3, 1, 1).unbind(2)
    source = by_x * x + (by_y * y[:, None] + (shift + sides / 2))
    inside = ((source >= 0) & (source < sides)).all(dim=1, keepdim=True)
    new = way(images, source.sub_(0.5)).add_(SLACK).floor_().clamp_(0, 255)
    return fill.view(3, 1, 1).lerp(new, inside.float())


def bilinear(images: Tensor, source: Tensor) -> Tensor:
    """(n, 3, H, W) images at positions between their pixels; borders go on outside.

    The source is x and y of each new pixel, (n, 2, H, W); the middle of the first pixel is at 0.
    """
    height, width = images.shape[-2:]
    grid = (2 * source + 1) / constant((width, height), source.device).view(2, 1, 1) - 1
    return grid_sample(images, grid.permute(0, 2, 3, 1), padding_mode="border", align_corners=False)


def bicubic(images: Tensor, source: Tensor) -> Tensor:
    """Resample like `bilinear`, from 16 pixels by Keys's (1981) weights with a = -1."""
    n, colours, height, width = images.shape
    before = source.floor()
    right = source - before
    left = 1 - right
    bend = right * left
    wide = 1 + bend
    weights = torch.stack((-bend * left, wide * left, wide * right, -bend * right), dim=2)
    weights = weights[:, 1, :, None] * weights[:, 0, None]  # (n, 4, 4, H, W) of lines and columns
    border = 2
    lined, row = pad(images, [border] * 4, mode="replicate"), width + 2 * border
    last = constant((width - 1, height - 1), source.device).view(2, 1, 1)
    corner = before.minimum(last).clamp_(min=-1).int() + 1
    start = torch.arange(n, device=corner.device, dtype=torch.int32) * lined[0, 0].numel()
    corner = start.view(-1, 1, 1) + corner[:, 1] * row + corner[:, 0]
    four = torch.arange(4, device=corner.device, dtype=torch.int32)
    new = embedding_bag(
        corner.view(-1, 1) + (four[:, None] * row + four).view(-1),
        lined.permute(0, 2, 3, 1).reshape(-1, colours),
        per_sample_weights=weights.permute(0, 3, 4, 1, 2).reshape(-1, 16),
        mode="sum",
    )
    return new.view(n, height, width, colours).permute(0, 3, 1, 2)


# Tables: what becomes of each of the 256 values


def point_tables(operation: Tensor, share: Tensor) -> Tensor:
    """(..., 256) tables of Invert, Posterize, Solarize and SolarizeAdd, at a share of magnitude 10.

    Below a threshold something is added, from it on values are inverted (not by SolarizeAdd), and
    lower bits are left out. Operations without a table leave values as they are.
    """
    v = index_range(256, share.device)
    chosen = constant(ALL_POINTS, share.device)[operation]
    numbers = torch.addcmul(chosen[..., 0], chosen[..., 1], share[..., None]).floor_()
    threshold, added, bits, mirror = numbers[..., None].unbind(-2)
    above = (mirror - v).abs_()
    table = (v + added).clamp_(max=255).where(v < threshold, above)
    step = (8 - bits).exp2_()
    return table.div_(step).floor_().mul_(step)


def look_up(images: Tensor, operation: Tensor, table: Tensor) -> Tensor:
    """Operations that send a value to the same one wherever it stands in its colour.

    Those of `POINT_OPERATIONS` have an (n, 256) table, those of `STATISTICS` make one.
    """
    n, colours = images.shape[:2]
    values = images.reshape(n, colours, -1)
    low, high, bins = values.amin(2, keepdim=True), values.amax(2, keepdim=True), values.long()
    # sums of whole numbers repeat on a GPU, those of others need not
    counts = bins.new_zeros(n, colours, 256).scatter_add_(2, bins, torch.ones_like(bins))
    chosen = broadcast_per_image(operation)[..., 0]
    flat, wide = (chosen == OPERATION_NUMBERS[name] for name in ("Equalize", "AutoContrast"))
    tables = table[:, None].lerp(equalised(counts, high), flat.float())
    return tables.lerp_(stretched(low, high), wide.float()).gather(2, bins).view(images.shape)


def stretched(low: Tensor, high: Tensor) -> Tensor:
    """(..., 256) tables of AutoContrast: low to 0, high to 255; a single value stays."""
    v = index_range(256, low.device)
    wide = ((v - low) * 255).div_((high - low).clamp_(min=1)).floor_().clamp_(0, 255)
    return v.lerp(wide, (high > low).float())


def equalised(counts: Tensor, high: Tensor) -> Tensor:
    """(..., 256) tables of Equalize: Pillow's integer formula for a flat histogram.

    With the counts c of the values and step = (pixels - count of the largest value) // 255, value v
    becomes (c_0 + ... + c_(v-1) + step // 2) // step; with step 0 it stays.
    """
    v = index_range(256, counts.device)
    upto = counts.cumsum(-1)
    step = (upto[..., -1:] - counts.gather(-1, high.long())) // 255
    table = (upto - counts + step // 2) // step.clamp(min=1)
    return v.lerp(table.clamp_(max=255).float(), (step > 0).float())


# Blends: towards another image or away from it


def blend(images: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Other + factor * (image - other), cut to whole numbers; a factor of 1 is the image.

    The other image is black (Brightness), the grey one (Color), its mean (Contrast), or the image
    smoothed by (1 1 1, 1 5 1, 1 1 1) / 13 inside its border (Sharpness).
    """
    gray = luma(images)
    mean = gray.mean((2, 3), keepdim=True).add_(0.5).floor_()
    grey, flat, smooth = (
        broadcast_per_image((operation == OPERATION_NUMBERS[name]).float())
        for name in ("Color", "Contrast", "Sharpness")
    )
    other = (gray * grey).addcmul_(mean, flat).addcmul(smoothed(images), smooth)
    other.addcmul_(images - other, broadcast_per_image(factor))
    return other.add_(SLACK).floor_().clamp_(0, 255)


def luma(images: Tensor) -> Tensor:
    """(n, 1, H, W) Pillow's grey, of sums that float32 has exactly: below 2^8, in 2^-16."""
    red, green, blue = images.split(1, dim=1)
    gray = (red * (19595 / 65536)).add_(green, alpha=38470 / 65536).add_(blue, alpha=7471 / 65536)
    return gray.add_(0.5).floor_()


def smoothed(images: Tensor) -> Tensor:
    """Pillow's SMOOTH; the border stays."""
    out, middle = images.clone(), images[..., 1:-1, 1:-1]
    lines = images[..., :-2, :] + images[..., 1:-1, :] + images[..., 2:, :]
    nine = lines[..., :-2] + lines[..., 1:-1] + lines[..., 2:]
    out[..., 1:-1, 1:-1] = nine.add_(middle, alpha=4).div_(13).add_(0.5).floor_()
    return out
