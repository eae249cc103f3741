"""Policies of image views: published ones, in which a recipe may replace values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import torch

PolicyKind = Literal["none", "base", "hard"]
Runs = Sequence[tuple["Policy", int]]  # policies in turn, how many views of each are made at once


@dataclass(frozen=True)
class Policy:
    """The policy of a view; `dataclasses.replace` changes a published one."""

    size: int  # pixels a side
    scale: tuple[float, float] = (0.08, 1.0)  # share of the picture that a crop covers
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # width by height of a crop
    # crop, flip and rotation in one sampling with such edges, colours in one matrix
    warp: str | None = None
    rotation: float = 0.0  # largest angle of a warp, in radians
    again: float | None = None  # share of the crop that a second crop shows
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
    def operations(self) -> tuple[str, ...]:
        """Return the operations after the crop, in SimCLR's order or RényiCL's."""
        if self.warp:
            return "again", "tint", "blur", "randaugment", "solarise"
        if self.randaugment:
            return "again", "jitter", "blur", "randaugment", "solarise", "grey"
        return "again", "jitter", "grey", "blur", "solarise"

    @property
    def tint(self) -> bool:
        return bool(self.jitter or self.grey)


def policy(kind: PolicyKind, size: int) -> Policy:
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


def grouped_policies(policies: Sequence[Policy], device: torch.device) -> Runs:
    """Policies in turn, with how many views of each are made at once.

    On a CPU each view is alone: more images at once would leave its caches. Elsewhere the views of
    neighbouring policies that are equal are one batch, for half as many launches.
    """
    if device.type == "cpu":
        return [(policy, 1) for policy in policies]
    return [(policy, len(list(run))) for policy, run in groupby(policies)]


def policy_pair(policy: Policy) -> tuple[Policy, Policy]:
    """BYOL's and MoCo v3's two views: all blurred; a tenth blurred and a fifth solarised.

    Saturation is jittered by 0.2, half as much as in SimCLR's for small images, as in both codes.
    """
    first = replace(policy, strength=(0.4, 0.4, 0.2, 0.1), blur=1.0)
    return first, replace(first, blur=0.1, solarise=0.2)
