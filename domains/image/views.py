"""Views of images, whole batches on the device: every image has its own parameters, no image has its own Python.

Each operation is a function of images and of parameters, one for each image; what is drawn is drawn apart.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["none", "base", "hard"]


@dataclass(frozen=True)
class Policy:
    """What a view is; `policy` gives the published ones, `dataclasses.replace` changes them."""

    size: int  # pixels a side
    scale: tuple[float, float] = (0.08, 1.0)  # share of the picture that a crop covers
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # width by height of a crop
    flip: float = 0.5  # probabilities from here on
    jitter: float = 0.8
    strength: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)  # brightness, contrast, saturation, hue
    grey: float = 0.2
    blur: float = 0.0  # Gaussian, sigma in [0.1, 2] as in SimCLR and MoCo v2 and v3
    solarise: float = 0.0
    randaugment: tuple[int, int] = (0, 0)  # operations in a row and their magnitude of 30
    erasing: float = 0.0


def policy(kind: Kind, size: int) -> Policy:
    """The published views by name.

    "base" is SimCLR's for small images as DCL's, HCL's and ADNCE's code has it, from 96 pixels with Gaussian blur for
    every second image; "hard" adds RandAugment (n = 3, m = 5) and RandomErasing (RényiCL); "none" is `evaluation`.
    """
    raise NotImplementedError


def augment(images: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1]: one view of each image.

    Args:
        images: (N, 3, H, W) uint8.
        policy: what the view is.
        rng: where all randomness comes from, on the images' device.
    """
    raise NotImplementedError


def multi_crop(images: Tensor, policy: Policy, local: Policy, n_local: int, rng: torch.Generator) -> list[Tensor]:
    """Two views of one policy and n_local small crops of another, each (N, 3, size, size) of its own policy's size.

    `local` is `replace(policy, size=..., scale=(0.05, 0.2))` in RényiCL.
    """
    raise NotImplementedError


def evaluation(images: Tensor, size: int) -> Tensor:
    """(N, 3, size, size) float32 in [0, 1] without any randomness.

    Images of that size are only converted; others are resized (shorter side to size below 96 pixels, else to
    8/7 of it) and their middle is kept.
    """
    raise NotImplementedError


def normalise(images: Tensor, mean: tuple[float, float, float], std: tuple[float, float, float]) -> Tensor:
    """Images in [0, 1] less the mean of each colour, in units of its standard deviation; channels last in memory."""
    raise NotImplementedError
