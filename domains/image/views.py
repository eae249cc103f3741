"""Views of images, whole batches on the device, each image with parameters of its own.

Each operation is a function of images and of parameters, one for each image; what is drawn is drawn
apart.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from contrastbench.domains.image import colour, masked
from contrastbench.domains.image.colour import column, constant, line
from contrastbench.domains.image.randaugment import randaugment

Kind = Literal["none", "base", "hard"]
Runs = Sequence[tuple["Policy", int]]  # policies in turn, how many views of each are made at once
Side = int | Tensor  # of an image in pixels, or (n,) of each image
ATTEMPTS = 10  # torchvision's: boxes are drawn so often until one fits
# share of the image and width by height of an erased box (Zhong et al. 2020, as timm has it)
ERASED = ((0.02, 1 / 3), (0.3, 1 / 0.3))


@dataclass(frozen=True)
class Policy:
    """What a view is; `policy` gives the published ones, `dataclasses.replace` changes them."""

    size: int  # pixels a side
    scale: tuple[float, float] = (0.08, 1.0)  # share of the picture that a crop covers
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # width by height of a crop
    flip: float = 0.5  # probabilities from here on
    jitter: float = 0.0
    # brightness, contrast, saturation, hue
    strength: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    grey: float = 0.0
    blur: float = 0.0  # Gaussian, sigma in [0.1, 2], as in SimCLR and MoCo v3
    randaugment: tuple[int, float] | None = None  # operations in a row, mean magnitude of 10
    fill: tuple[float, float, float] = (0.5, 0.5, 0.5)  # of what RandAugment moves in
    solarise: float = 0.0  # from one half on
    erasing: float = 0.0

    @property
    def colours(self) -> tuple[str, ...]:
        """What follows the crop, in its order: SimCLR's, or that of RényiCL's released code."""
        if self.randaugment:
            return "jitter", "blur", "randaugment", "solarise", "grey"
        return "jitter", "grey", "blur", "solarise"


def policy(kind: Kind, size: int) -> Policy:
    """The published views by name.

    "base" is SimCLR's: for small images without Gaussian blur, from 96 pixels with it for every
    second image (DCL's, HCL's and ADNCE's code and AttentionNCE's Figure 6 have it for 32 pixels,
    too: the recipe's `blur`); "hard" adds RandAugment (n = 3, m = 5) and RandomErasing to it
    (RényiCL's appendix B.4; the probability 0.2 is that of its ImageNet views, B.3); "none" has
    crops and flips alone, as RényiCL's Table 10 and linear classifiers.
    """
    base = Policy(size, jitter=0.8, grey=0.2, blur=0.5 if size >= 96 else 0.0)
    hard = replace(base, randaugment=(3, 5.0), erasing=0.2)
    return {"none": Policy(size), "base": base, "hard": hard}[kind]


def together(policies: Sequence[Policy], device: torch.device) -> Runs:
    """Policies in turn, with how many views of each are made at once.

    On a CPU each view is alone: more images at once would leave its caches. Elsewhere the views of
    neighbouring policies that are equal are one batch, for half as many launches.
    """
    if device.type == "cpu":
        return [(policy, 1) for policy in policies]
    return [(policy, len(list(run))) for policy, run in groupby(policies)]


def with_blur(policy: Policy, probability: float | None) -> Policy:
    """The policy with that probability of Gaussian blur; None: its own."""
    return policy if probability is None else replace(policy, blur=probability)


def jittered(policy: Policy, strength: float) -> Policy:
    """The policy with a jitter of colours of that strength (Chen et al. 2020, appendix A)."""
    largest = (0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)
    return replace(policy, strength=largest)


def pair(policy: Policy) -> tuple[Policy, Policy]:
    """BYOL's and MoCo v3's two views: all blurred; a tenth blurred and a fifth solarised.

    Saturation is jittered by 0.2, half as much as in SimCLR's for small images, as in both codes.
    """
    first = replace(policy, strength=(0.4, 0.4, 0.2, 0.1), blur=1.0)
    return first, replace(first, blur=0.1, solarise=0.2)


def augment(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1]: one view of each image, before it is erased.

    Colours are floats throughout, but for RandAugment; Pillow cuts each pixel to 8 bits after each
    operation, which leaves an image up to 1/255 darker each time.

    Args:
        images: (N, 3, H, W) uint8.
        policy: what the view is.
        rng: where all randomness comes from, on the images' device.
    """
    return recolour(random_crop(images, policy, rng), policy, rng)


def random_crop(images: Tensor, policy: Policy, rng: torch.Generator, times: int = 1) -> Tensor:
    """(times N, 3, size, size) float32 in [0, 1]: resized parts of each of the uint8 images."""
    if times > 1:
        images = images.repeat(times, 1, 1, 1)
    n, _, height, width = images.shape
    flipped = happens(n, policy.flip, rng)
    boxes = draw_crops(n, height, width, policy.scale, policy.ratio, rng)
    return crop(images, boxes, policy.size, flipped)


def recolour(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """What follows the crop: the policy's colours, overwriting crops in [0, 1]."""
    for name in policy.colours:
        if getattr(policy, name):
            images = COLOURS[name](images, policy, rng)
    return images


def jitter(x: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """Some images with another brightness, contrast, saturation and hue."""
    return colour.jitter(x, *draw_jitter(len(x), policy.jitter, policy.strength, rng))


def to_grey(x: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """Some images without colour."""
    return colour.to_grey(x, happens(len(x), policy.grey, rng))


def blur_some(x: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """Some images out of focus."""
    n = len(x)
    return some(blur, x, happens(n, policy.blur, rng), uniform(n, 0.1, 2.0, rng))


def solarise(x: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """Some images with their bright half inverted."""
    return colour.solarise(x, torch.where(happens(len(x), policy.solarise, rng), 0.5, 2.0))


def augment_more(x: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """RandAugment."""
    way = None if x.device.type == "cpu" else masked.apply
    return randaugment(x, *(policy.randaugment or (0, 0.0)), policy.fill, rng, way)


COLOURS: dict[str, Callable[[Tensor, Policy, torch.Generator], Tensor]] = {
    "jitter": jitter,
    "grey": to_grey,
    "blur": blur_some,
    "solarise": solarise,
    "randaugment": augment_more,
}


def erase_some(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """RandomErasing on normalised images, in place: boxes of normal noise, as timm's `pixel`."""
    boxes = draw_erased(len(images), policy.size, policy.erasing, rng)

    def with_noise(x: Tensor, boxes: Tensor) -> Tensor:
        return erase(x, boxes, torch.randn(x.shape, generator=rng, device=rng.device))

    return some(with_noise, images, boxes[:, 2] > 0, boxes)


def evaluation(images: Tensor, size: int) -> Tensor:
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
    return centre(x, size)


def stored_size(size: int) -> int:
    """Shorter side of stored images for views of `size`: 8/7 of it, below 96 `size` itself.

    >>> stored_size(224), stored_size(32)
    (256, 32)
    """
    return size if size < 96 else round(size * 8 / 7)


def centre(images: Tensor, size: int) -> Tensor:
    """The (size, size) middle of images."""
    top, left = (round((side - size) / 2) for side in images.shape[-2:])
    return images[..., top : top + size, left : left + size]


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


def to_float(images: Tensor) -> Tensor:
    """Float32 in [0, 1] of uint8."""
    return images.float().div_(255)


def happens(n: int, probability: float, rng: torch.Generator) -> Tensor:
    """(n,) bool: true with the probability."""
    return torch.rand(n, generator=rng, device=rng.device) < probability


def uniform(n: int, low: float, high: float, rng: torch.Generator) -> Tensor:
    """(n,) uniform in [low, high)."""
    return torch.rand(n, generator=rng, device=rng.device) * (high - low) + low


def some(
    operation: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    chosen: Tensor,
    parameters: Tensor,
) -> Tensor:
    """The operation on chosen images only, in place; those of a CPU, as others do not tell."""
    if images.device.type != "cpu":
        return torch.where(column(chosen), operation(images, parameters), images)
    rows = chosen.nonzero()[:, 0]
    images[rows] = operation(images[rows], parameters[rows])
    return images


def draw_boxes(
    n: int,
    largest: Tensor,
    area: Side,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    rng: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """(2, n) heights and widths of boxes, the first of ten draws that fits, and whether one does.

    Areas are uniform in scale * area, ratios of width by height log-uniform, as torchvision draws
    them; `largest` is (2, n) or (2, 1).
    """
    noise = torch.rand(2, ATTEMPTS, n, generator=rng, device=rng.device)
    least = (scale[0], math.log(ratio[0]))
    spread = (scale[1] - scale[0], math.log(ratio[1]) - least[1])
    spread_by, least_by = constant((spread, least), rng.device).view(2, 2, 1, 1)
    shares, logarithms = noise.mul_(spread_by).add_(least_by)
    areas, ratios = area * shares, logarithms.exp_()
    sides = torch.stack([areas / ratios, areas * ratios]).sqrt_().round_()
    allowed = sides.clamp(constant((1,), rng.device), largest.unsqueeze(1))
    fits, first = (sides == allowed).all(dim=0).view(torch.uint8).max(dim=0)
    return sides.gather(1, first.expand(2, 1, n)).squeeze(1), fits.view(torch.bool)


def place(sides: Tensor, shape: Tensor, rng: torch.Generator) -> Tensor:
    """(n, 4) top, left, height, width of boxes of (2, n) sides anywhere inside that shape."""
    noise = torch.rand(sides.shape, generator=rng, device=rng.device)
    return torch.cat([(noise * (shape - sides + 1)).floor_(), sides]).T


def draw_crops(
    n: int,
    height: Side,
    width: Side,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    rng: torch.Generator,
) -> Tensor:
    """(n, 4) top, left, height, width of crops, in whole pixels: torchvision's RandomResizedCrop.

    Where no draw fits, it is the largest box in the middle whose ratio is allowed.

    Args:
        n: crops.
        height: of the image in pixels, or (n,) of each image.
        width: likewise.
        scale: smallest and largest share of the image.
        ratio: smallest and largest width by height.
        rng: of the draws.
    """
    shape, otherwise = both(height, width, rng.device), middle(height, width, ratio)
    if isinstance(height, int):
        otherwise = constant(tuple(otherwise.tolist()), rng.device)
    sides, fits = draw_boxes(n, shape, height * width, scale, ratio, rng)
    boxes = place(sides, shape, rng)
    return torch.where(fits[:, None], boxes, otherwise.to(boxes))


def both(height: Side, width: Side, device: torch.device) -> Tensor:
    """(2, 1) of two numbers, (2, n) of two tensors."""
    if isinstance(height, Tensor) and isinstance(width, Tensor):
        return torch.stack([height, width])
    return constant((height, width), device).view(2, 1)


def middle(height: Side, width: Side, ratio: tuple[float, float]) -> Tensor:
    """(4,) or (n, 4) top, left, height, width of the largest box whose ratio is allowed."""
    tall, wide = (torch.as_tensor(side, dtype=torch.float64) for side in (height, width))
    allowed = (wide / tall).clamp(*ratio)
    h, w = tall.minimum((wide / allowed).round()), wide.minimum((tall * allowed).round())
    return torch.stack([(tall - h) // 2, (wide - w) // 2, h, w], dim=-1)


def draw_erased(n: int, size: int, probability: float, rng: torch.Generator) -> Tensor:
    """(n, 4) top, left, height, width of boxes to erase (Zhong et al. 2020), some empty."""
    chosen = happens(n, probability, rng)
    smaller = both(size - 1, size - 1, rng.device)
    sides, fits = draw_boxes(n, smaller, size * size, *ERASED, rng)
    return place(sides.flip(0), both(size, size, rng.device), rng) * (chosen & fits)[:, None]


def draw_jitter(
    n: int, probability: float, strength: tuple[float, float, float, float], rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(n, 4) factors of `colour.jitter`, neutral where nothing changes, and (n, 4) orders."""
    noise = torch.rand(2, n, 4, generator=rng, device=rng.device)
    low, spread, unit = jitter_limits(strength, rng.device)
    factors = low + spread * noise[0]
    chosen = happens(n, probability, rng)
    return torch.where(chosen[:, None], factors, unit), noise[1].argsort(dim=1)


@cache
def jitter_limits(strength: tuple[float, float, float, float], device: torch.device) -> Tensor:
    """(3, 4) lowest factors, widths of their ranges, and the factors that change nothing."""
    spread, unit = torch.tensor(strength), torch.tensor([1.0, 1.0, 1.0, 0.0])
    low = (unit - spread).clamp(min=0).where(unit == 1, -spread)
    return torch.stack([low, unit + spread - low, unit]).to(device)


def crop(images: Tensor, boxes: Tensor, size: int, flipped: Tensor) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1]: a resized box of each image, some mirrored.

    Args:
        images: (N, 3, H, W) uint8.
        boxes: (N, 4) top, left, height, width in pixels.
        size: of the result.
        flipped: (N,) bool, which to mirror.
    """
    height, width = images.shape[-2:]
    top, left, tall, wide = boxes.unbind(1)
    if height == width:
        start, length = boxes.T.reshape(2, -1)
        turned = torch.cat([torch.zeros_like(flipped), flipped])
        rows, columns = weights(start, length, width, size, turned).chunk(2)
    else:
        rows = weights(top, tall, height, size)
        columns = weights(left, wide, width, size, flipped)
    return resample(to_float(images), rows, columns)


def weights(
    start: Tensor, length: Tensor, pixels: int, size: int, flipped: Tensor | None = None
) -> Tensor:
    """(N, size, pixels) weights of a line's pixels in its resized part: triangles.

    Args:
        start: (N,) where the part starts.
        length: (N,) of the part, in whole pixels.
        pixels: of the line.
        size: new pixels of the part.
        flipped: (N,) bool, which to turn round.
    """
    step = length / size
    new = line(size, start.device, 0.5)
    centres = torch.addcmul(start[:, None], step[:, None], new)
    if flipped is not None:
        centres = torch.where(flipped[:, None], centres.flip(1), centres)
    old = line(pixels, start.device, 0.5)
    first, last = (start + 0.5)[:, None], (start + length - 0.5)[:, None]
    if pixels <= size:  # nothing is made smaller: two neighbours share each new pixel
        return (old - centres.clamp(first, last)[..., None]).abs_().neg_().add_(1).relu_()
    share = 1 - (old - centres[..., None]).abs_() / step.clamp(min=1).view(-1, 1, 1)
    inside = (old >= first) & (old <= last)
    share = share.relu_().mul_(inside[:, None])
    return share.div_(share.sum(dim=2, keepdim=True))


def resample(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Each image between its two matrices: rows @ image @ columns.T.

    Args:
        images: (N, 3, H, W).
        rows: (N, h, H).
        columns: (N, w, W).
    """
    n, colours, height, width = images.shape
    x = torch.bmm(images.view(n, colours * height, width), columns.transpose(1, 2))
    return rows[:, None] @ x.view(n, colours, height, columns.shape[1])


def blur(images: Tensor, sigma: Tensor) -> Tensor:
    """SimCLR's Gaussian blur, its kernel a tenth of the image, which is mirrored at borders.

    Args:
        images: (N, 3, S, S).
        sigma: (N,) in pixels.
    """
    size = images.shape[-1]
    radius = max(1, size // 20)
    offsets = torch.arange(-radius, radius + 1, device=images.device)
    kernel = (-0.5 * (offsets / sigma[:, None]) ** 2).softmax(dim=1)
    source = torch.arange(size, device=images.device)[:, None] + offsets
    source = size - 1 - (size - 1 - source.abs()).abs()  # mirrored at both borders
    share = kernel.new_zeros(len(sigma), size, size)
    share.scatter_add_(2, source.expand(len(sigma), -1, -1), kernel[:, None].expand(-1, size, -1))
    return resample(images, share, share)


def erase(images: Tensor, boxes: Tensor, noise: Tensor) -> Tensor:
    """Each image with the noise in its box.

    Args:
        images: (N, 3, H, W).
        boxes: (N, 4) top, left, height, width; an empty one erases nothing.
        noise: like the images.
    """
    height, width = images.shape[-2:]
    start, length = boxes.unsqueeze(2).split(2, dim=1)
    pixels = line(max(height, width), images.device)
    rows, columns = ((pixels >= start) & (pixels < start + length)).unbind(1)
    inside = rows[:, None, :height, None] & columns[:, None, None, :width]
    return torch.lerp(images, noise, inside.float())
