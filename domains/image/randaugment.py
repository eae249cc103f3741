"""RandAugment (Cubuk et al. 2020) on batches, each image with operations of its own.

The 14 operations and their signs are torchvision's, with magnitudes of 10 as in the authors' and in
timm's code: `torchvision.transforms.RandAugment(n, m, num_magnitude_bins=11)`. New pixels are
black, the nearest pixel is taken.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad

from contrastbench.domains.image.colour import (
    blend,
    brightness,
    column,
    contrast,
    saturation,
    solarise,
)


def randaugment(images: Tensor, n: int, magnitude: float, rng: torch.Generator) -> Tensor:
    """(N, 3, H, W): n operations in a row on each image, each drawn from all 14.

    Args:
        images: (N, 3, H, W) in [0, 1].
        n: operations in a row.
        magnitude: of 10.
        rng: of the draws.
    """
    shape = (n, len(images))
    choices = torch.randint(len(OPERATIONS), shape, generator=rng, device=rng.device)
    signs = torch.randint(2, shape, generator=rng, device=rng.device) * 2.0 - 1
    x = quantise(images)
    for choice, sign in zip(choices, signs, strict=True):
        x = apply(x, choice, sign, magnitude)
    return x


def apply(images: Tensor, choice: Tensor, sign: Tensor, magnitude: float) -> Tensor:
    """Each image's chosen operation.

    Args:
        images: (N, 3, H, W) in [0, 1] in steps of 1/255.
        choice: (N,) numbers of `OPERATIONS`.
        sign: (N,) +1 or -1, for operations that have two directions.
        magnitude: of 10.
    """
    out = torch.empty_like(images)
    counts = torch.bincount(choice, minlength=len(OPERATIONS)).tolist()
    for operation, rows in zip(OPERATIONS.values(), choice.argsort().split(counts), strict=True):
        if len(rows):
            out[rows] = quantise(operation(images[rows], sign[rows] * (magnitude / 10)))
    return out


def quantise(images: Tensor) -> Tensor:
    """To steps of 1/255, as operations on bytes leave them."""
    return images.mul(255).round_().div_(255)


def affine(images: Tensor, matrix: Tensor) -> Tensor:
    """Each pixel from where the (N, 2, 3) matrix sends it: the nearest one, else black."""
    height, width = images.shape[-2:]
    side = matrix.new_tensor([width, height])
    theta = matrix.clone()
    theta[:, :, :2] *= side / side[:, None]
    theta[:, :, 2] *= 2 / side
    grid = affine_grid(theta, list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="nearest", padding_mode="zeros", align_corners=False)


def matrices(n: int, like: Tensor) -> Tensor:
    """(n, 2, 3) that leave images as they are."""
    return torch.eye(2, 3, device=like.device).repeat(n, 1, 1)


def shear_x(images: Tensor, level: Tensor) -> Tensor:
    """Lines move by 0.3 * level of their distance from the top."""
    matrix = matrices(len(images), level)
    matrix[:, 0, 1] = 0.3 * level
    matrix[:, 0, 2] = 0.3 * level * images.shape[-2] / 2
    return affine(images, matrix)


def shear_y(images: Tensor, level: Tensor) -> Tensor:
    """Columns move by 0.3 * level of their distance from the left."""
    return shear_x(images.mT, level).mT


def translate_x(images: Tensor, level: Tensor) -> Tensor:
    """To the right by whole pixels, at most 150 of 331."""
    matrix = matrices(len(images), level)
    matrix[:, 0, 2] = -(150 / 331 * images.shape[-1] * level).trunc()
    return affine(images, matrix)


def translate_y(images: Tensor, level: Tensor) -> Tensor:
    """Down by whole pixels, at most 150 of 331."""
    return translate_x(images.mT, level).mT


def rotate(images: Tensor, level: Tensor) -> Tensor:
    """About the middle, at most 30 degrees, against the clock."""
    angle = level * math.radians(30)
    matrix = matrices(len(images), level)
    matrix[:, 0, 0] = matrix[:, 1, 1] = angle.cos()
    matrix[:, 0, 1], matrix[:, 1, 0] = -angle.sin(), angle.sin()
    return affine(images, matrix)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """A blend with the image smoothed by (1 1 1, 1 5 1, 1 1 1) / 13; the border stays."""
    height, width = images.shape[-2:]
    kernel = images.new_ones(1, 1, 3, 3)
    kernel[0, 0, 1, 1] = 5
    smooth = conv2d(images.reshape(-1, 1, height, width), kernel / 13).view(
        *images.shape[:2], height - 2, width - 2
    )
    border = images.clone()
    border[..., 1:-1, 1:-1] = quantise(smooth)
    return blend(images, border, factor)


def posterise(images: Tensor, level: Tensor) -> Tensor:
    """8 - round(4 * |level|) bits of each colour."""
    step = 2 ** (4 * level.abs()).round()
    values = images.mul(255).round_()
    return (values.div_(column(step)).floor_()).mul_(column(step)).div_(255)


def autocontrast(images: Tensor) -> Tensor:
    """Each colour stretched to [0, 1]; a colour of one value stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    flat = high == low
    low, high = low.masked_fill(flat, 0), high.masked_fill(flat, 1)
    return (images - low) / (high - low)


def equalise(images: Tensor) -> Tensor:
    """Each colour's histogram made flat, by Pillow's integer formula.

    With the counts c of the values and step = (pixels - count of the largest value) // 255, value v
    becomes (c_0 + ... + c_(v-1) + step // 2) // step; with step 0 it stays.
    """
    n, colours, height, width = images.shape
    values = images.reshape(n * colours, -1).mul(255).round_().long()
    counts = values.new_zeros(n * colours, 256).scatter_add_(1, values, torch.ones_like(values))
    largest = counts.gather(1, values.amax(dim=1, keepdim=True))
    step = torch.div(height * width - largest, 255, rounding_mode="floor")
    below = pad(counts.cumsum(dim=1)[:, :-1], (1, 0))
    table = torch.div(below + step // 2, step.clamp(min=1), rounding_mode="floor").clamp_(0, 255)
    return (
        torch.where(step == 0, values, table.gather(1, values)).float().div_(255).view(images.shape)
    )


OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of images and of level, in [-1, 1]
    "Identity": lambda images, level: images,
    "ShearX": shear_x,
    "ShearY": shear_y,
    "TranslateX": translate_x,
    "TranslateY": translate_y,
    "Rotate": rotate,
    "Brightness": lambda images, level: brightness(images, 1 + 0.9 * level),
    "Color": lambda images, level: saturation(images, 1 + 0.9 * level),
    "Contrast": lambda images, level: contrast(images, 1 + 0.9 * level),
    "Sharpness": lambda images, level: sharpness(images, 1 + 0.9 * level),
    "Posterize": posterise,
    "Solarize": lambda images, level: solarise(images, 1 - 1e-4 - level.abs()),
    "AutoContrast": lambda images, level: autocontrast(images),
    "Equalize": lambda images, level: equalise(images),
}
