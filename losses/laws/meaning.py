"""Check what a loss does to positives and to negatives: it learns from both, in this direction."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import random_contrasts as drawn
from contrastbench.losses.laws.assertions import Build, Remark, Wrong, law
from contrastbench.losses.laws.causes import NO_NUMBERS

ANGLES = (1.4, 1.0, 0.6, 0.2)  # radians between positives: cosines 0.17, 0.54, 0.83, 0.98
COSINES = (0.0, 0.3, 0.6, 0.9)  # of negatives
STEP_ROUNDING = 1e-9  # relative
SEPARATE_POSITIVES = "both_views with positives"  # where positives are no keys
FLAT_REMEDY = "a hinge that no cosine reaches, a rounding, a sign: take a smooth function"
CONTRAST_FIELDS = {"positives": "positive", "negatives": "keys"}  # of a contrast


@law("positives or negatives get no gradient", NO_NUMBERS)
def check_detached(build: Build, seed: int) -> None:
    """Whatever changes the value gets a gradient: positives and negatives."""
    loss, pairing = build().requires_grad_(False), drawn.LAW_PAIRINGS["both_views"]
    for name, field in CONTRAST_FIELDS.items():
        if depends_on(field, build, seed):
            contrast, moved = with_others(field, seed)
            ends = [getattr(each, field) for each in (contrast, moved)]
            check_learns(name, partial(with_field, loss, contrast, field), *ends)
    if loss.needs_views:
        views, others = drawn.random_views(seed, 6)[:2], drawn.random_views(seed + 1, 6)[:2]
        check_learns("views", lambda x: loss(pairing([*x])), *map(torch.stack, (views, others)))
        for k in range(2):
            value = loss(pairing([*views[:k], others[k], *views[k + 1 :]]))
            assert not torch.equal(loss(pairing(views)), value), f"view {k + 1} changes nothing"


def check_learns(name: str, f: Callable[[Tensor], Tensor], start: Tensor, end: Tensor) -> None:
    """Fail unless f has a gradient at an end of a way or in its middle: a hinge is flat on a part.

    Where f is convex and differs at both ends, it has one at the higher end.
    """
    gradients = [gradient(f, torch.lerp(start, end, share)) for share in (0.0, 0.5, 1.0)]
    assert any(g is not None for g in gradients), f"{name}: detached, or a tensor becomes a number"
    if not any(g is not None and g.any() for g in gradients):
        raise Wrong(f"{name}: the gradient is zero on all batches that were drawn", FLAT_REMEDY)


def gradient(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor | None:
    """Return the gradient of f at x; None: f does not know where its value comes from."""
    leaf = x.clone().requires_grad_()
    value = f(leaf)
    found = torch.autograd.grad(value, [leaf], allow_unused=True) if value.requires_grad else [None]
    return found[0]


def with_field(loss: Loss, contrast: Contrast, field: str, vectors: Any) -> Tensor:
    return loss(replace(contrast, **{field: vectors}))


def with_others(field: str, seed: int) -> tuple[Contrast, Contrast]:
    """Return a contrast, and the same with another draw's vectors in one of its fields."""
    contrast, other = (
        drawn.LAW_PAIRINGS[SEPARATE_POSITIVES](drawn.random_views(drawn_by, 6))
        for drawn_by in (seed, seed + 1)
    )
    return contrast, replace(contrast, **{field: getattr(other, field)})


def depends_on(field: str, build: Build, seed: int) -> bool:
    contrast, moved = with_others(field, seed)
    return not torch.equal(build()(moved), build()(contrast))


@law("did the sign flip?", "minimise: the loss is minus the logarithm of the positive's share")
def check_sign(build: Build, seed: int) -> None:
    """Closer positives do not raise the loss everywhere, nor do closer negatives lower it."""
    positives, negatives = positive_steps(build, seed), negative_steps(build, seed)
    grows = min(map(min, positives.values())) > 0
    rewards = max(map(max, positives.values())) < 0  # a regulariser alone may do neither
    falls = max(map(max, negatives.values())) < 0
    assert not (grows and falls), "it grows as positives come closer, and falls as negatives do"
    assert not grows, "it grows as positives come closer"
    assert not (rewards and falls), "it falls as negatives come closer"


@law(
    "positives change nothing",
    'use scores.pos; a term of a sum is checked in it: "infonce + 0.5*mine.py:Mine"',
)
def check_positives(build: Build, seed: int) -> None:
    """Positives change the loss."""
    moved = any(map(any, positive_steps(build, seed).values()))
    flat = "nor do negatives: is it a hinge that no cosine reaches?"
    measured = "" if depends_on("keys", build, seed) else flat
    assert moved or depends_on("positive", build, seed), measured


@law("negatives change nothing", "use scores.neg")
def check_negatives(build: Build, seed: int) -> None:
    """Negatives change the loss."""
    moved = any(map(any, negative_steps(build, seed).values()))
    if not (moved or depends_on("keys", build, seed)):
        raise Remark(
            "negatives change nothing: alone it lets all embeddings collapse, "
            "but it may be a term of a sum such as infonce + 0.5*mine.py:Mine"
        )


@law(
    "closer positives raise the loss",
    "on graphs log_share is log(pos / mean neg) and may exceed 0, so its exponential is no "
    "probability: take 1 - p from sigmoid, or min(log_share, 0)",
)
def check_closer_positives(build: Build, seed: int) -> None:
    """It never grows when positives alone come closer.

    Not asked of `whole_row`, whose positive is one of its own negatives: what weighs hard negatives
    may grow there.
    """
    for name, steps in positive_steps(build, seed).items():
        assert max(steps) <= 0, f"{name}: it grows as positives come closer, by {max(steps):.3g}"


def positive_steps(build: Build, seed: int) -> dict[str, list[float]]:
    """Return by pairing by how much the loss grows from angle to smaller angle of positives."""
    return step_differences(build, [drawn.apart_by(angle, 4 + seed % 3) for angle in ANGLES])


def negative_steps(build: Build, seed: int) -> dict[str, list[float]]:
    """Return by pairing by how much the loss grows from cosine to larger cosine of negatives."""
    batches = [drawn.equicorrelated_views(cosine, 4 + seed % 3) for cosine in COSINES]
    steps = step_differences(build, batches)
    del steps["same_class"]  # whose positives are other samples too
    return steps


def step_differences(build: Build, batches: Sequence[Sequence[Tensor]]) -> dict[str, list[float]]:
    """Return by pairing the relative differences of the loss from batch to batch."""
    differences = {}
    for name, pairing in drawn.LAW_PAIRINGS.items():
        if name == "whole_row":
            continue
        values = [build()(pairing(views)).item() for views in batches]
        assert all(map(math.isfinite, values)), f"{name}: the loss is {values[-1]}"
        grown = [(b - a) / max(1.0, abs(a)) for a, b in pairwise(values)]
        differences[name] = [step if abs(step) > STEP_ROUNDING else 0.0 for step in grown]
    return differences
