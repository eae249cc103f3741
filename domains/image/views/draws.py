"""Draw the parameters of views, one for each image, from one generator."""

import math
from functools import cache

import torch
from torch import Tensor

from contrastbench.domains.image.views.colour import CHROMA, GREY, TURNED, constant
from contrastbench.domains.image.views.policies import Policy

SideLength = int | Tensor  # of an image in pixels, or (n,) of each image
ATTEMPTS = 10  # torchvision's: boxes are drawn so often until one fits
# share of the image and width by height of an erased box (Zhong et al. 2020, as timm has it)
ERASED = ((0.02, 1 / 3), (0.3, 1 / 0.3))


def bernoulli(n: int, probability: float, rng: torch.Generator) -> Tensor:
    """(n,) bool: true with the probability."""
    return torch.rand(n, generator=rng, device=rng.device) < probability


def uniform(n: int, low: float, high: float, rng: torch.Generator) -> Tensor:
    """(n,) uniform in [low, high)."""
    return torch.rand(n, generator=rng, device=rng.device) * (high - low) + low


def draw_boxes(
    n: int,
    largest: Tensor,
    area: SideLength,
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


def place_boxes(sides: Tensor, shape: Tensor, rng: torch.Generator) -> Tensor:
    """(n, 4) top, left, height, width of boxes of (2, n) sides anywhere inside that shape."""
    noise = torch.rand(sides.shape, generator=rng, device=rng.device)
    return torch.cat([(noise * (shape - sides + 1)).floor_(), sides]).T


def draw_crops(
    n: int, height: SideLength, width: SideLength, policy: Policy, rng: torch.Generator
) -> Tensor:
    """(n, 4) top, left, height, width of crops, in whole pixels: torchvision's RandomResizedCrop.

    Where no draw fits, it is the largest box in the middle whose ratio is allowed. Height and width
    of the image in pixels are numbers, or (n,) of each image.
    """
    shape = height_and_width(height, width, rng.device)
    otherwise = centre_box(height, width, policy.ratio)
    if isinstance(height, int):
        otherwise = constant(tuple(otherwise.tolist()), rng.device)
    sides, fits = draw_boxes(n, shape, height * width, policy.scale, policy.ratio, rng)
    boxes = place_boxes(sides, shape, rng)
    return torch.where(fits[:, None], boxes, otherwise.to(boxes))


def height_and_width(height: SideLength, width: SideLength, device: torch.device) -> Tensor:
    """(2, 1) of two numbers, (2, n) of two tensors."""
    if isinstance(height, Tensor) and isinstance(width, Tensor):
        return torch.stack([height, width])
    return constant((height, width), device).view(2, 1)


def centre_box(height: SideLength, width: SideLength, ratio: tuple[float, float]) -> Tensor:
    """(4,) or (n, 4) top, left, height, width of the largest box whose ratio is allowed."""
    tall, wide = (torch.as_tensor(side, dtype=torch.float64) for side in (height, width))
    allowed = (wide / tall).clamp(*ratio)
    h, w = tall.minimum((wide / allowed).round()), wide.minimum((tall * allowed).round())
    return torch.stack([(tall - h) // 2, (wide - w) // 2, h, w], dim=-1)


def draw_warps(n: int, policy: Policy, rng: torch.Generator) -> Tensor:
    """(n, 2, 3) affine maps from a view's square [-1, 1] to its picture's: crops, flips, rotations.

    A crop lies anywhere; one that is longer than the picture shows what is beyond both edges. Its
    share of the picture is uniform, its width by height log-uniform.
    """
    share, stretch, *centre, mirrored, turn = torch.rand(6, n, generator=rng, device=rng.device)
    low, high = (math.log(side) / 2 for side in policy.ratio)
    least, most = policy.scale
    side, stretch = (least + (most - least) * share).sqrt(), low + (high - low) * stretch
    wide, tall = side * stretch.exp(), side * stretch.neg().exp()
    across, down = ((2 * p - 1) * (1 - x) for p, x in zip(centre, (wide, tall), strict=True))
    wide = wide * (1 - 2.0 * (mirrored < policy.flip))
    angle = (2 * turn - 1) * policy.rotation
    cos, sin = angle.cos(), angle.sin()
    rows = wide * cos, -tall * sin, across, wide * sin, tall * cos, down
    return torch.stack(rows, dim=1).view(n, 2, 3)


def draw_tints(n: int, policy: Policy, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """(n, 3, 3) mixtures of colours, and (n,) the shares of the mean luma that come to them.

    Brightness, contrast about the mean luma, saturation and hue are of one matrix, as is grey:
    luma stays where the chroma is turned and scaled, by zero where an image is grey.
    """
    noise = torch.rand(6, n, generator=rng, device=rng.device)
    low, spread, unit = jitter_limits(policy.strength, rng.device)[..., None]
    factors = torch.where(noise[4] < policy.jitter, low + spread * noise[:4], unit)
    brightness, contrast, saturation, hue = factors
    saturation = saturation * (noise[5] >= policy.grey)
    angle = 2 * math.pi * hue
    parts = torch.stack([torch.ones_like(hue), saturation * angle.cos(), saturation * angle.sin()])
    matrices = (brightness * contrast * parts).T @ constant((GREY, CHROMA, TURNED), rng.device)
    return matrices.view(n, 3, 3), brightness * (1 - contrast)


def draw_erased(n: int, policy: Policy, rng: torch.Generator) -> Tensor:
    """(n, 4) top, left, height, width of boxes to erase (Zhong et al. 2020), some empty."""
    chosen, size = bernoulli(n, policy.erasing, rng), policy.size
    smaller = height_and_width(size - 1, size - 1, rng.device)
    sides, fits = draw_boxes(n, smaller, size * size, *ERASED, rng)
    boxes = place_boxes(sides.flip(0), height_and_width(size, size, rng.device), rng)
    return boxes * (chosen & fits)[:, None]


def draw_jitter(n: int, policy: Policy, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """(n, 4) factors of `colour.jitter`, neutral where nothing changes, and (n, 4) orders."""
    noise = torch.rand(2, n, 4, generator=rng, device=rng.device)
    low, spread, unit = jitter_limits(policy.strength, rng.device)
    factors = low + spread * noise[0]
    chosen = bernoulli(n, policy.jitter, rng)
    return torch.where(chosen[:, None], factors, unit), noise[1].argsort(dim=1)


@cache
def jitter_limits(strength: tuple[float, float, float, float], device: torch.device) -> Tensor:
    """(3, 4) lowest factors, widths of their ranges, and the factors that change nothing."""
    spread, unit = torch.tensor(strength), torch.tensor([1.0, 1.0, 1.0, 0.0])
    low = (unit - spread).clamp(min=0).where(unit == 1, -spread)
    return torch.stack([low, unit + spread - low, unit]).to(device)
