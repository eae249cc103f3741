"""Make losses whose parameters change over a training, and refuse those that would not follow."""

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import both_views, indexed
from contrastbench.losses.ranges import Range
from contrastbench.losses.schedules import Course, Learned

PROBE_BATCH = 4  # of the batch that asks for a gradient
INTERNAL = {*vars(nn.Module()), "_arguments"}  # attributes that are no setting of a loss


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
        twin.prepare_samples(PROBE_BATCH)
    loss = at(0)
    for key, course in courses.items():
        if isinstance(getattr(twin, key), float | int):
            setattr(twin, key, course.ends[0])
    with torch.random.fork_rng(devices=[]):
        prepared = copy.deepcopy(loss)
        prepared.prepare_samples(PROBE_BATCH)
    if where := changed_name(prepared, twin):
        raise UserError(
            f"{name} cannot change {' and '.join(courses)} in a training, because its constructor "
            f"computes {where} from it: give a number"
        )
    loss.follow(courses, ranges)
    for key, course in courses.items():
        if isinstance(course, Learned) and not has_gradient(loss, f"log_{key}"):
            raise UserError(f"{name} has no gradient by {key}, got {course}: give a number")
    return loss


def changed_name(loss: Loss, twin: Loss) -> str:
    """Return the name of an attribute or a tensor in which two losses differ; "" if none."""
    others = dict(twin.named_modules())
    for prefix, module in loss.named_modules():
        found, other = attribute_texts(module), attribute_texts(others[prefix])
        for key in found:
            if found[key] != other.get(key):
                return f"{prefix}.{key}".removeprefix(".")
    state = twin.state_dict()
    return next((k for k, x in loss.state_dict().items() if not torch.equal(x, state[k])), "")


def attribute_texts(module: nn.Module) -> dict[str, str]:
    """Return the attributes of a module as texts, without the addresses of objects."""
    return {
        key: re.sub("0x[0-9a-f]+", "", repr(value))
        for key, value in vars(module).items()
        if key not in INTERNAL
    }


def has_gradient(loss: Loss, name: str) -> bool:
    """Return whether a parameter of the loss has a gradient on a small batch."""
    loss = copy.deepcopy(loss).eval()
    z = (
        torch.arange(PROBE_BATCH * PROBE_BATCH, dtype=torch.float32)
        .sin()
        .view(PROBE_BATCH, PROBE_BATCH)
        .requires_grad_()
    )
    with torch.random.fork_rng(devices=[]):
        loss.prepare(PROBE_BATCH, PROBE_BATCH)
        loss.prepare_samples(PROBE_BATCH)
        value = loss(indexed(both_views(z, z + 0.1), torch.arange(PROBE_BATCH)))
    (gradient,) = torch.autograd.grad(value, [loss.get_parameter(name)], allow_unused=True)
    return gradient is not None
