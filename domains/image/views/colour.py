"""Colour operations on batches of images, each image with its own parameter.

Images are (N, 3, H, W) floats in [0, 1], parameters are (N,); formulas are torchvision's, without
rounding to 8 bits. Pixels are chosen by `lerp` with weights 0 and 1, which is exact: `where` takes
thirty times as long on a CPU.
"""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)  # ITU-R 601, as Pillow's and torchvision's grey
# of red, green and blue: where |h - peak| is 0, its sign, and what it is added to
SIXTHS = ((3, 2, 4), (1, -1, -1), (-1, 2, 2))
# matrices of colours, row by row: the luma, what is left without it, and this turned by a quarter
# of YIQ's circle of hues
GREY = LUMA * 3
CHROMA = tuple(float(place % 4 == 0) - share for place, share in enumerate(GREY))
TURNED = (0.1677, 0.3293, -0.4970, -0.3281, 0.0356, 0.2926, 1.2497, -1.0465, -0.2033)
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
PASSES = (0, 1, 2)  # linear passes
LIMITS = ((0.0, 1.0), (-math.inf, math.inf))  # of a pass, and of one that changes nothing


def broadcast_per_image(parameters: Tensor) -> Tensor:
    """(N, 1, 1, 1) of (N,): one number for each image."""
    return parameters.view(-1, 1, 1, 1)


@cache
def constant(
    values: tuple[Any, ...], device: torch.device, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Numbers on the device, copied there once; not to be changed."""
    return torch.tensor(values, dtype=dtype, device=device)


@cache
def index_range(n: int, device: torch.device, first: float = 0.0) -> Tensor:
    """(n,) float32 on the device: first, first + 1, ..., made once; not to be changed."""
    return torch.arange(n, dtype=torch.float32, device=device) + first


def grey(images: Tensor) -> Tensor:
    """(N, 1, H, W) luma of each pixel."""
    red, green, blue = images.unbind(1)
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2]).unsqueeze(1)


def hue(images: Tensor, shift: Tensor) -> Tensor:
    """Hue moved by a share of the colour circle, value and saturation as they were.

    With the hue h in sixths of the circle, low and high the smallest and largest of a pixel's three
    colours: red = low + (high - low) * clamp(|h - 3| - 1, 0, 1), green with 2 - |h - 2| and blue
    with 2 - |h - 4|.
    """
    red, green, blue = images.unbind(1)
    high = torch.maximum(torch.maximum(red, green), blue)
    low = torch.minimum(torch.minimum(red, green), blue)
    chroma = high - low
    not_red, not_green = (high.unsqueeze(1) - images[:, :2]).sign_().unbind(1)
    if_green = (blue - red).add_(chroma, alpha=2)
    if_blue = (red - green).add_(chroma, alpha=4)
    h = torch.lerp(green - blue, if_green.lerp_(if_blue, not_green), not_red)
    h.div_(chroma.clamp(min=1e-8))
    h += 6 * shift.view(-1, 1, 1)
    h.remainder_(6)
    peaks, signs, tops = constant(SIXTHS, images.device).view(3, 3, 1, 1)
    parts = torch.addcmul(tops, signs, (h.unsqueeze(1) - peaks).abs_())
    return parts.clamp_(0, 1).mul_(chroma.unsqueeze(1)).add_(low.unsqueeze(1))


def to_grey(images: Tensor, chosen: Tensor) -> Tensor:
    """Chosen images without colour; chosen is a bool for each."""
    return torch.lerp(images, grey(images), broadcast_per_image(chosen.float()))


def tint(images: Tensor, matrices: Tensor, share_of_mean: Tensor) -> Tensor:
    """(N, 3, H, W) images with their colours mixed by (N, 3, 3) matrices, cut to [0, 1].

    An (N,) share of its mean luma is added to each.
    """
    luma = images.mean((2, 3)) @ constant(LUMA, images.device)
    added = (share_of_mean * luma).view(-1, 1, 1)
    return torch.baddbmm(added, matrices, images.flatten(2)).clamp_(0, 1).view_as(images)


def solarise(images: Tensor, threshold: Tensor) -> Tensor:
    """Values from the threshold on are inverted; a threshold above 1 changes nothing."""
    return torch.lerp(images, 1 - images, (images >= broadcast_per_image(threshold)).float())


def jitter(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue of each image in its own order.

    The first three are all x -> clamp(f * x + (1 - f) * y) with y = 0, the mean grey or the grey,
    so that one pass does whichever is an image's turn. Hue has its turn before, between or after
    three such passes. The images are overwritten.

    Args:
        factors: (N, 4) of brightness, contrast, saturation and the shift of hue.
        order: (N, 4) which comes first, second, ...: numbers of the columns of `factors`.
    """
    turn = order.argsort(dim=1)[:, HUE]  # of hue, 0 to 3
    way, passes = (by_turn, PASSES) if images.device.type == "cpu" else (in_six, PASSES * 2)
    linear = constant(passes, order.device, torch.long)
    others = order.gather(1, linear + (linear >= turn[:, None]))
    turn = turn.masked_fill(factors[:, HUE] == 0, 4)
    return way(images, turn, factors[:, HUE], others, factors.gather(1, others))


def by_turn(images: Tensor, turn: Tensor, shift: Tensor, kind: Tensor, factor: Tensor) -> Tensor:
    """Hue of the images whose turn it is, after none, one, two and three of the linear passes."""
    groups = turn.argsort().split(torch.bincount(turn, minlength=5).tolist())
    mix = mixture(kind, factor)
    for position in range(4):
        rows = groups[position]
        if len(rows):
            images[rows] = hue(images[rows], shift[rows])
        if position < 3:
            linear_(images, mix[:, position], 0.0, 1.0)
    return images


def in_six(images: Tensor, turn: Tensor, shift: Tensor, kind: Tensor, factor: Tensor) -> Tensor:
    """Compute the same as `by_turn` without a read from the device.

    Three linear passes, hue, and three again: an image has each where it is its turn, and nothing
    changes by the other.
    """
    after = constant((0, 0, 0, 1, 1, 1), turn.device, torch.bool)
    idle = (turn[:, None] > constant(PASSES * 2, turn.device)) == after
    mix = mixture(kind, factor.masked_fill_(idle, 1))
    low, high = constant(LIMITS, turn.device)[idle.long()].permute(2, 1, 0)[..., None, None, None]
    for position in range(6):
        if position == 3:
            images = torch.where(broadcast_per_image(turn < 4), hue(images, shift), images)
        linear_(images, mix[:, position], low[position], high[position])
    return images


def mixture(kind: Tensor, factor: Tensor) -> Tensor:
    """(3, k, N, 1, 1, 1) shares of the image, of its grey and of its mean grey in k passes.

    Each pass has a kind, BRIGHTNESS, CONTRAST or SATURATION, and a factor, (N, k).
    """
    others = constant((SATURATION, CONTRAST), kind.device, torch.long).view(2, 1, 1)
    shares = torch.cat([factor[None], (1 - factor) * (kind == others)])
    return shares.transpose(1, 2)[..., None, None, None]


def linear_(images: Tensor, mix: Tensor, low: float | Tensor, high: float | Tensor) -> None:
    """Brightness, contrast or saturation, whichever is each image's kind, in place."""
    share, of_grey, of_mean = mix
    other = grey(images)
    mean = other.mean((1, 2, 3), keepdim=True)
    other.mul_(of_grey).add_(mean * of_mean)
    clamped: Any = torch.addcmul(other, images, share, out=images)
    clamped.clamp_(low, high)
