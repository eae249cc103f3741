"""Views of images, whole batches on the device, each image with parameters of its own.

Each operation is a function of images and of parameters, one for each image (`colour`, `spatial`);
what is drawn is drawn apart (`draws`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from contrastbench.domains.image.views import colour, draws
from contrastbench.domains.image.views.policies import Policy
from contrastbench.domains.image.views.randaugment import randaugment
from contrastbench.domains.image.views.spatial import blur, crop, erase, to_float, warp


def augment(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1]: one view of each image, before it is erased.

    Colours are floats throughout, but for RandAugment; Pillow cuts each pixel to 8 bits after each
    operation, which leaves an image up to 1/255 darker each time.
    """
    return recolour(random_crop(images, policy, rng), policy, rng)


def random_crop(images: Tensor, policy: Policy, rng: torch.Generator, times: int = 1) -> Tensor:
    """(times N, 3, size, size) float32 in [0, 1]: resized parts of each of the uint8 images."""
    if times > 1:
        images = images.repeat(times, 1, 1, 1)
    n, _, height, width = images.shape
    if policy.warp:
        return warp(images, draws.draw_warps(n, policy, rng), policy.size, policy.warp)
    flipped = draws.bernoulli(n, policy.flip, rng)
    boxes = draws.draw_crops(n, height, width, policy, rng)
    return crop(to_float(images), boxes, policy.size, flipped)


def crop_again(x: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """Show a part of each crop alone, as RényiCL's noisy crops do."""
    share, kept = policy.again or 1.0, torch.zeros(len(x), dtype=torch.bool, device=x.device)
    n, _, height, width = x.shape
    boxes = draws.draw_crops(n, height, width, replace(policy, scale=(share, share)), rng)
    return crop(x, boxes, policy.size, kept)


def recolour(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """Apply the policy's operations after the crop, overwriting crops in [0, 1]."""
    for name in policy.operations:
        if getattr(policy, name):
            images = OPERATIONS[name](images, policy, rng)
    return images


# of a policy p; some images change
OPERATIONS: dict[str, Callable[[Tensor, Policy, torch.Generator], Tensor]] = {
    "again": crop_again,
    "tint": lambda x, p, rng: colour.tint(x, *draws.draw_tints(len(x), p, rng)),
    "jitter": lambda x, p, rng: colour.jitter(x, *draws.draw_jitter(len(x), p, rng)),
    "grey": lambda x, p, rng: colour.to_grey(x, draws.bernoulli(len(x), p.grey, rng)),
    "blur": lambda x, p, rng: on_chosen(
        blur, x, draws.bernoulli(len(x), p.blur, rng), draws.uniform(len(x), 0.1, 2.0, rng)
    ),
    "solarise": lambda x, p, rng: colour.solarise(
        x, torch.where(draws.bernoulli(len(x), p.solarise, rng), 0.5, 2.0)
    ),
    "randaugment": lambda x, p, rng: randaugment(x, *(p.randaugment or (0, 0.0)), p.fill, rng),
}


def erase_some(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """RandomErasing on normalised images, in place: boxes of normal noise, as timm's `pixel`."""
    boxes = draws.draw_erased(len(images), policy, rng)

    def with_noise(x: Tensor, boxes: Tensor) -> Tensor:
        return erase(x, boxes, torch.randn(x.shape, generator=rng, device=rng.device))

    return on_chosen(with_noise, images, boxes[:, 2] > 0, boxes)


def evaluation_view(images: Tensor, size: int) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1] without any randomness.

    Images of that size are only converted; others are resized (shorter side to `stored_size(size)`)
    and their middle is kept.
    """
    x = to_float(images)
    height, width = x.shape[-2:]
    if height == width == size:
        return x
    scale = stored_size(size) / min(height, width)
    if scale != 1:
        shape = [int(side * scale + 1e-6) for side in (height, width)]
        x = interpolate(x, shape, mode="bilinear", antialias=True).clamp_(0, 1)
    top, left = (round((side - size) / 2) for side in x.shape[-2:])
    return x[..., top : top + size, left : left + size]


def stored_size(size: int) -> int:
    """Shorter side of stored images for views of `size`: 8/7 of it, below 96 `size` itself.

    >>> stored_size(224), stored_size(32)
    (256, 32)
    """
    return size if size < 96 else round(size * 8 / 7)


def normalise(
    images: Tensor, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> Tensor:
    """Images in [0, 1] with each colour standardised; channels last in memory."""
    scale, shift = standards(mean, std, images.device)
    return (images * scale).sub_(shift).contiguous(memory_format=torch.channels_last)


@cache
def standards(
    mean: tuple[float, float, float], std: tuple[float, float, float], device: torch.device
) -> Tensor:
    """(2, 3, 1, 1) by what colours are multiplied, and what is taken away then."""
    scale = torch.tensor(std).reciprocal()
    return torch.stack([scale, torch.tensor(mean) * scale]).view(2, 3, 1, 1).to(device)


def on_chosen(
    operation: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    chosen: Tensor,
    parameters: Tensor,
) -> Tensor:
    """The operation on chosen images only, in place; those of a CPU, as others do not tell."""
    if images.device.type != "cpu":
        changed = operation(images, parameters)
        return torch.where(colour.broadcast_per_image(chosen), changed, images)
    rows = chosen.nonzero()[:, 0]
    images[rows] = operation(images[rows], parameters[rows])
    return images
