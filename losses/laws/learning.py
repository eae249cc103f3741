"""Check learning: positives come closer; a loss's own parameters learn, move and are saved."""

import math
from itertools import pairwise

import torch

from contrastbench.losses.laws.assertions import (
    Build,
    close,
    configured,
    learned,
    value_and_gradient,
)
from contrastbench.losses.laws.random_contrasts import (
    PAIRINGS,
    apart_by,
    random_views,
    some_pairing,
)

ANGLES = (1.4, 1.0, 0.6, 0.2)  # radians between positives: cosines 0.17, 0.54, 0.83, 0.98
# the whole, single rows, tiles with a rest
BLOCKS: tuple[dict[str, int], ...] = ({}, {"block_elements": 1}, {"tile": 5})


def check_learning(build: Build, seed: int) -> None:
    """Every parameter of the loss's own gets a finite gradient, in float32 too."""
    names = [name for name, p in build().named_parameters() if p.requires_grad]
    if not names:
        return
    taught = set()
    for pairing in PAIRINGS.values():
        for dtype in (torch.float64, torch.float32):
            for options in BLOCKS:
                loss = configured(build().to(dtype), options)
                views = random_views(seed, 6, dtype=dtype, grad=True)
                own = value_and_gradient(loss, pairing(views), views)[1 + len(views) :]
                for name, gradient in zip(names, own, strict=True):
                    assert gradient.isfinite().all(), f"the gradient of {name} is not finite"
                    taught |= {name} if gradient.any() else set()
    assert taught >= set(names), f"{', '.join(set(names) - taught)} never gets a gradient"


def check_state(build: Build, seed: int) -> None:
    """State dict and dtype carry over all that was learned; nothing but the parameters learns."""
    loss, views, pairing = build(), random_views(seed, 6), some_pairing(seed)
    contrast, before = pairing(views), build().params
    with torch.no_grad():
        for parameter in learned(loss):
            parameter.mul_(1.25)
    assert loss.params == before, "the loss's record changes while it learns"
    again = build()
    again.load_state_dict(loss.state_dict())
    close(again(contrast), loss(contrast), 0)
    frozen = build().requires_grad_(False)  # holes are -inf then, and finite where something learns
    close(frozen(contrast), build()(contrast), 1e-12)
    single = loss.float()(pairing([v.float() for v in views]))
    assert single.dtype == torch.float32, f"a float32 contrast gives a {single.dtype} loss"
    close(single.double(), again(contrast), 1e-5)


def check_closer_positives(build: Build, seed: int) -> None:
    """It never grows when positives alone come closer, and shrinks in some pairing.

    Not asked of `whole_row`, whose positive is one of its own negatives: what weighs hard negatives
    may grow there. Nor of `same_class`, where one positive of several comes closer, if the loss
    says that it `balances_positives`.
    """
    shrinks = False
    for name, pairing in PAIRINGS.items():
        if name == "whole_row" or (name == "same_class" and build().balances_positives):
            continue
        values = [build()(pairing(apart_by(angle, 4 + seed % 3))).item() for angle in ANGLES]
        assert all(map(math.isfinite, values)), f"{name}: the loss is {values[-1]}"
        steps = [(b - a) / max(1.0, abs(a)) for a, b in pairwise(values)]
        worst = max(steps)
        assert worst <= 1e-9, f"{name}: it grows as positives come closer, by {worst:.3g}"
        shrinks |= min(steps) < 0
    assert shrinks, "it does not change when positives come closer"
