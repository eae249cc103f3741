"""Make losses whose parameters change over a training, and refuse those that would not follow."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import both_views, indexed
from contrastbench.losses.ranges import Range
from contrastbench.losses.schedules import Course, Learned

PROBE_BATCH = 4  # of the batch on which losses are compared


def make_changing(
    name: str,
    make: Callable[[Mapping[str, Any]], Loss],
    params: Mapping[str, Any],
    courses: Mapping[str, Course],
    ranges: Mapping[str, Range],
) -> Loss:
    """Make a loss with parameters that change over the training.

    Args:
        name: of the loss.
        make: makes it of parameters that do not change.
        params: all that are given.
        courses: those that change, by name.
        ranges: in which what is learned is kept, by name.

    Raises:
        UserError: it cannot be made at one end of a schedule, or does not follow the change.
    """

    def at(end: int) -> Loss:
        return make({**params, **{k: c.ends[end] for k, c in courses.items()}})

    with torch.random.fork_rng(devices=[]):  # the loss draws the same numbers
        twin = at(-1)
    loss = at(0)
    moved = copy.deepcopy(loss)
    for key, course in courses.items():
        if isinstance(getattr(twin, key), float | int):
            setattr(moved, key, course.ends[-1])
    if not torch.equal(probe(moved), probe(twin)):
        raise UserError(
            f"{name} cannot change {' and '.join(courses)} in a training, because its constructor "
            "computes something from it: give a number"
        )
    loss.follow(courses, ranges)
    for key, course in courses.items():
        if isinstance(course, Learned) and not has_gradient(loss, f"log_{key}"):
            raise UserError(f"{name} has no gradient by {key}, got {course}: give a number")
    return loss


def has_gradient(loss: Loss, name: str) -> bool:
    """Return whether a parameter of the loss has a gradient on a small batch."""
    loss = copy.deepcopy(loss)
    wanted = [loss.get_parameter(name)]
    (gradient,) = torch.autograd.grad(probe(loss), wanted, allow_unused=True)
    return gradient is not None


def probe(loss: Loss) -> Tensor:
    """Return the value of a loss on a small batch."""
    z = torch.arange(PROBE_BATCH**2, dtype=torch.float32).sin().view(PROBE_BATCH, PROBE_BATCH)
    z.requires_grad_()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        loss.eval()
        loss.prepare(PROBE_BATCH, PROBE_BATCH)
        loss.prepare_samples(PROBE_BATCH)
        return loss(indexed(both_views(z, z + 0.1), torch.arange(PROBE_BATCH)))
