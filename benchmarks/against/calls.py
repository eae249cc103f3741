"""Call a loss of ours, of a user's file or of an installed package on random batches of two views.

Each library has a calling convention of its own:

- ours: `loss(contrast)`, in the pairing of choice,
- pytorch-metric-learning: `loss(embeddings, labels)`, or `ref_emb` for the second view,
- sentence-transformers: `loss(columns, labels)`, with a model that returns what it is given,
- lightly and any other callable: `loss(z1, z2)`; by class also with labels where it takes them.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.errors import UserError, users_code
from contrastbench.losses import Loss, both_views, get_loss, other_view, same_class, whole_row
from contrastbench.losses.expression import file_and_class, package_and_name
from contrastbench.losses.loading import from_file, from_package
from contrastbench.losses.source import Sources
from contrastbench.losses.views import LIBRARIES, called_by_library, is_from, made_by_library

DIM = 256  # more than there are embeddings, so that each pair's gradient can be told
BATCH_SIZES = (4, 16, 64)  # samples of a batch
DIRECTIONS = 3  # that samples share, so that some negatives are hard
COPY_NOISE = 0.02  # noise between a sample and its near copy


@dataclass(frozen=True)
class Batch:
    """Two views of the same samples, with the class of each sample."""

    z1: Tensor  # (N, D)
    z2: Tensor  # (N, D)
    labels: Tensor  # (N,)

    @property
    def views(self) -> Tensor:
        """Return (2N, D) the first view's rows, then the second's."""
        return torch.cat([self.z1, self.z2])

    def leaves(self, dtype: torch.dtype) -> "Batch":
        """Return the batch in that dtype, as leaves that get gradients."""
        z1, z2 = (z.to(dtype).requires_grad_() for z in (self.z1.clone(), self.z2.clone()))
        return Batch(z1, z2, self.labels)


def random_batch(size: int, seed: int, equal_copy: bool = False) -> Batch:
    """Draw a batch with hard and easy negatives, rows of several lengths, and a copied sample.

    Args:
        size: number of samples.
        seed: of the draw.
        equal_copy: the last sample is equal to the first, not only near it.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    shared = normal(DIRECTIONS, DIM)[torch.arange(size) % DIRECTIONS]

    shares = partial(torch.rand, size, 1, dtype=torch.float64, generator=generator)
    samples = shared * shares() + normal(size, DIM)
    views = [samples + 0.5 * normal(size, DIM) for _ in range(2)]
    for view in views:
        view[-1] = view[0] + COPY_NOISE * normal(DIM)
        view *= 0.5 + shares()
        if equal_copy:  # to the bit: a distance of rounding errors has a gradient of any direction
            view[-1] = view[0]
    return Batch(views[0], views[1], torch.arange(size) % max(2, size // 2))


def batches(size: int) -> list[Batch]:
    """Return the batches of that size: two with a near copy, one with an equal copy."""
    return [random_batch(size, 0), random_batch(size, 1), random_batch(size, 2, equal_copy=True)]


PAIRINGS: dict[str, Callable[[Batch], Any]] = {
    "both_views": lambda batch: both_views(batch.z1, batch.z2),
    "other_view": lambda batch: other_view(batch.z1, batch.z2),
    "whole_row": lambda batch: whole_row(batch.z1, batch.z2),
    "same_class": lambda batch: same_class(batch.z1, batch.z2, batch.labels),
}
Call = Callable[[Batch], Tensor]
TEMPERATURES = ("temperature", "tau", "scale")  # names that packages have for it


@dataclass(frozen=True)
class CalledLoss:
    """A loss by its name with its parameters, and the pairing in which it is called."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    pairing: str = "both_views"

    def __str__(self) -> str:
        params = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.name}({params})" if params else self.name

    def with_params(self, **params: Any) -> "CalledLoss":
        return replace(self, params={**self.params, **params})

    @property
    def temperature(self) -> str | None:
        """Return the name of the parameter that is a temperature or its inverse, if it has one."""
        target = foreign_loss(self.name)
        if target is None:
            names = list(get_loss(self.name, **self.params).params)
            return next((key for key in names if key.rpartition(".")[2] == "temperature"), None)
        if not isinstance(target, type) and not inspect.isfunction(target):
            return None
        names = list(inspect.signature(target).parameters)
        return next((key for key in TEMPERATURES if key in names), None)

    def make(self, dtype: torch.dtype, device: str | torch.device = "cpu") -> Call:
        """Return the loss as a function of a batch of that dtype on that device."""
        target = foreign_loss(self.name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            if target is None:
                loss: Any = get_loss(self.name, **self.params)
            else:
                loss = foreign_callable(self.name, target, self.params)
        if isinstance(loss, nn.Module):
            loss.to(device, dtype).eval()
        return partial(value_of_call, self, partial(convention(loss), loss, self.pairing))


def value_of_call(side: CalledLoss, call: Callable[[Batch], Any], batch: Batch) -> Tensor:
    """Return the loss of a batch, whatever goes wrong as one line."""
    with users_code(f"call {side} on two views of {len(batch.z1)} samples, {side.pairing}"):
        value = call(batch)
    if not (isinstance(value, Tensor) and value.numel() == 1 and value.requires_grad):
        raise UserError(f"{side} returns no number with a gradient: return a scalar tensor")
    return value.reshape(())


def foreign_loss(name: str) -> Any:
    """Return the class or function that a name means; None: a loss of this package's kind."""
    if own := file_and_class(name):
        target = from_file(*own, Sources())
        return None if isinstance(target, type) and issubclass(target, Loss) else target
    return from_package(name) if package_and_name(name) else None


def foreign_callable(name: str, target: Any, params: Mapping[str, Any]) -> Any:
    """Return a callable: an object of a class, or a function with its parameters."""
    with users_code(f"make {name}"):
        if inspect.isfunction(target):
            inspect.signature(target).bind_partial(**params)
            return partial(target, **params)
        if not isinstance(target, type):
            if params:
                raise UserError(f"{name} is an object, which takes no parameters: name its class")
            return target
        return made_by_library(target, params)


def convention(loss: Any) -> Callable[[Any, str, Batch], Any]:
    if isinstance(loss, Loss):
        return call_ours
    return call_library if is_from(type(loss), *LIBRARIES) else call_views


def call_ours(loss: Loss, pairing: str, batch: Batch) -> Tensor:
    """Call a loss of this package's kind on a contrast."""
    contrast = PAIRINGS[pairing](batch)
    if loss.needs_classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # both sides draw the same proxies, if they draw alike
            loss.prepare(int(batch.labels.max()) + 1, contrast.anchor.shape[1])
        loss.to(contrast.anchor)
    if loss.needs_samples:  # which are all met for the first time
        loss.prepare_samples(len(contrast.anchor))
        contrast = replace(contrast, index=contrast.anchor_id)
    return loss(contrast)


def call_library(loss: Any, pairing: str, batch: Batch) -> Any:
    """Call a loss of a library with labels; the second view is the reference where it is alone."""
    apart = pairing in ("other_view", "whole_row")
    samples = torch.arange(len(batch.z1), device=batch.z1.device)
    labels = batch.labels if pairing == "same_class" else samples
    return called_by_library(loss, batch.z1, batch.z2, labels, apart)


def call_views(loss: Any, pairing: str, batch: Batch) -> Any:
    """Call a loss on two views, by class also on labels where it takes them."""
    labels = [batch.labels] if pairing == "same_class" and takes_labels(loss) else []
    return loss(batch.z1, batch.z2, *labels)


def takes_labels(loss: Any) -> bool:
    """Return whether a callable takes labels as its third argument."""
    call = loss.forward if isinstance(loss, nn.Module) else loss
    third = list(inspect.signature(call).parameters.values())[2:3]
    return any(p.default is p.empty or "label" in p.name for p in third)
