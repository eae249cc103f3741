"""Colour operations on batches of images, each image with its own parameter.

Images are (N, 3, H, W) floats in [0, 1], parameters are (N,); formulas are torchvision's, without
rounding to 8 bits. Pixels are chosen by `lerp` with weights 0 and 1, which is exact: `where` takes
thirty times as long on a CPU.
"""

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)  # ITU-R 601, as Pillow's and torchvision's grey
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)


def column(parameters: Tensor) -> Tensor:
    """(N, 1, 1, 1) of (N,): one number for each image."""
    return parameters.view(-1, 1, 1, 1)


def grey(images: Tensor) -> Tensor:
    """(N, 1, H, W) luma of each pixel."""
    red, green, blue = images.unbind(1)
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2]).unsqueeze(1)


def blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """Factor * images + (1 - factor) * other, cut to [0, 1]."""
    factor = column(factor)
    return torch.addcmul(other * (1 - factor), images, factor).clamp_(0, 1)


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Images times their factor."""
    return (images * column(factor)).clamp_(0, 1)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """A blend with the mean grey of each image."""
    return blend(images, grey(images).mean((1, 2, 3), keepdim=True), factor)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """A blend with the grey image."""
    return blend(images, grey(images), factor)


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
    not_red, not_green = (high - red).sign_(), (high - green).sign_()
    if_green = (blue - red).add_(chroma, alpha=2)
    if_blue = (red - green).add_(chroma, alpha=4)
    h = torch.lerp(green - blue, if_green.lerp_(if_blue, not_green), not_red).div_(
        chroma.clamp(min=1e-8)
    )
    h += 6 * shift.view(-1, 1, 1)
    h -= (h / 6).floor_().mul_(6)
    parts = ((h - 3).abs_().sub_(1), 2 - (h - 2).abs_(), 2 - (h - 4).abs_())
    return torch.stack([part.clamp_(0, 1).mul_(chroma).add_(low) for part in parts], dim=1)


def to_grey(images: Tensor, chosen: Tensor) -> Tensor:
    """Chosen images without colour; chosen is a bool for each."""
    return torch.lerp(images, grey(images), column(chosen.float()))


def solarise(images: Tensor, threshold: Tensor) -> Tensor:
    """Values from the threshold on are inverted; a threshold above 1 changes nothing."""
    return torch.lerp(images, 1 - images, (images >= column(threshold)).float())


def jitter(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue of each image in its own order.

    The first three are all x -> clamp(f * x + (1 - f) * y) with y = 0, the mean grey or the grey,
    so that one pass does whichever is an image's turn. Hue has its turn before, between or after
    three such passes.

    Args:
        images: (N, 3, H, W), overwritten.
        factors: (N, 4) of brightness, contrast, saturation and the shift of hue.
        order: (N, 4) which comes first, second, ...: numbers of the columns of `factors`.
    """
    turn = order.argsort(dim=1)[:, HUE]  # of hue, 0 to 3
    three = torch.arange(3, device=order.device)
    others = order.gather(1, three + (three >= turn[:, None]))
    turn = torch.where(factors[:, HUE] == 0, 4, turn)
    by_turn = turn.argsort().split(torch.bincount(turn, minlength=5).tolist())
    for position in range(4):
        rows = by_turn[position]
        if len(rows):
            images[rows] = hue(images[rows], factors[rows, HUE])
        if position < 3:
            kind = others[:, position]
            linear_(images, kind, factors.gather(1, kind[:, None])[:, 0])
    return images


def linear_(images: Tensor, kind: Tensor, factor: Tensor) -> None:
    """Brightness, contrast or saturation, whichever is each image's kind, in place."""
    rest = 1 - factor
    other = grey(images)
    mean = other.mean((1, 2, 3)) * rest * (kind == CONTRAST)
    other.mul_(column(rest * (kind == SATURATION))).add_(column(mean))
    torch.addcmul(other, images, column(factor), out=images).clamp_(0, 1)
