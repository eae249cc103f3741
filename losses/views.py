"""Losses of the embeddings of two whole views, which see coordinates and lengths, not scores."""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, widen

LIBRARIES = ("pytorch_metric_learning", "sentence_transformers")
# losses of sentence-transformers that take a label for each pair of sentences
PAIR_LABELS = ("ContrastiveLoss", "OnlineContrastiveLoss", "CosineSimilarityLoss", "CoSENTLoss")
NEEDS_VIEWS = (
    "takes two whole views of each sample, which this recipe does not pair: "
    "leave its pairing and further views at their defaults, and hard negatives out"
)
SCORES_ONLY = "it takes whole views, and this law is about scores"
COORDINATES = "it takes whole views, whose coordinates may matter"
LAWS_OF_SCORES = (
    *("terms", "sign", "positives", "negatives", "closer positives", "no negatives"),
    *("holes", "padding", "repeated positives", "repeated anchors", "tiles"),
)
NOT_OF_VIEWS = MappingProxyType(
    {**dict.fromkeys(LAWS_OF_SCORES, SCORES_ONLY), "rotation": COORDINATES}
)
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class GivenEmbeddings(nn.Module):
    """A model of sentence-transformers that returns the embeddings that it is given."""

    def forward(self, features: dict[str, Tensor], **_: Any) -> dict[str, Tensor]:
        return features


def is_from(kind: Any, *packages: str) -> bool:
    """Return whether a class, or one that it is derived from, is of one of the packages."""
    kinds = getattr(kind, "__mro__", ())
    return any(base.__module__.partition(".")[0] in packages for base in kinds)


def made_by_library(kind: Any, values: Mapping[str, Any]) -> Any:
    """Return an object of a class, with the model that those of sentence-transformers take."""
    model = {"model": GivenEmbeddings()} if is_from(kind, LIBRARIES[1]) else {}
    return kind(**model, **values)


def called_by_library(
    loss: Any, z1: Tensor, z2: Tensor, labels: Tensor | None = None, apart: bool = False
) -> Any:
    """Return the loss of two views, (N, D) each, by a library that takes other arguments.

    - pytorch-metric-learning: `loss(embeddings, labels)`, or `ref_emb` for the second view,
    - sentence-transformers: `loss(columns, labels)`, with a model that returns what it is given.

    Args:
        labels: (N,) equal where rows are positives; None: those of one sample alone.
        apart: whether negatives of the first view are in the second one alone, if the loss can.
    """
    ids = torch.arange(len(z1), device=z1.device) if labels is None else labels
    call = call_sentence_transformers if is_from(type(loss), LIBRARIES[1]) else call_metric_learning
    return call(loss, z1, z2, ids, apart)


def call_metric_learning(loss: Any, z1: Tensor, z2: Tensor, labels: Tensor, apart: bool) -> Any:
    """Call a loss on embeddings with labels; the second view is the reference where it is alone.

    Labels that are the same tensor would mean that row i of both is one embedding.
    """
    if apart:
        return loss(z1, labels, ref_emb=z2, ref_labels=labels.clone())
    return loss(torch.cat([z1, z2]), labels.repeat(2))


def call_sentence_transformers(loss: Any, z1: Tensor, z2: Tensor, labels: Tensor, _: bool) -> Any:
    """Call a loss on columns: two views, all pairs with labels, or all rows with classes."""
    names = [base.__name__ for base in type(loss).__mro__]
    if any(name.startswith("Batch") for name in names):
        return loss(as_features(torch.cat([z1, z2])), labels.repeat(2))
    if set(PAIR_LABELS) & set(names):
        size = len(labels)
        first, second = z1.repeat_interleave(size, dim=0), z2.repeat(size, 1)
        same = labels.repeat_interleave(size) == labels.repeat(size)
        return loss(as_features(first, second), same.to(first.dtype))
    return loss(as_features(z1, z2), None)


def as_features(*embeddings: Tensor) -> list[dict[str, Tensor]]:
    """Return embeddings as the features that the model `GivenEmbeddings` returns."""
    return [{"sentence_embedding": z} for z in embeddings]


class ViewLoss(Loss):
    """A loss of two whole views: subclasses write `of_views` and nothing else.

    It sees the embeddings of both views, row i of both from sample i, as the model gave them: not
    normalised, in float32 or better, and those of the whole batch where processes share it. So it
    must not gather them itself. It takes every pairing of two views.
    """

    needs_views = True
    other_laws = NOT_OF_VIEWS

    def of_views(self, z1: Tensor, z2: Tensor) -> Tensor:
        """The loss of two views, (N, D) each: one number."""
        raise NotImplementedError

    def forward(self, contrast: Contrast) -> Tensor:
        if contrast.views is None:
            raise UserError(f"{self.name} {NEEDS_VIEWS}")
        z1, z2 = map(widen, contrast.views)
        with torch.autocast(z1.device.type, enabled=False):
            return self.of_views(z1, z2)


class AdaptedLoss(ViewLoss):
    """A plain module or function of two views, on the two views of a contrast."""

    other_laws = MappingProxyType(
        {**NOT_OF_VIEWS, "parameters": "its author decides which values it takes"}
    )

    def __init__(self, name: str, target: Callable[..., Any], values: Mapping[str, Any]) -> None:
        super().__init__()
        self.named, self._target = name, target
        known = own_parameters(target)
        defaults = {n: p.default for n, p in known.items() if p.default is not p.empty}
        check_values(defaults, values)
        self.values = {**defaults, **values}
        kind = isinstance(target, type)
        self.inner = made_by_library(target, values) if kind else partial(target, **values)

    @property
    def name(self) -> str:
        return self.named

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.values)

    def of_views(self, z1: Tensor, z2: Tensor) -> Tensor:
        of_library = is_from(type(self.inner), *LIBRARIES)
        return called_by_library(self.inner, z1, z2) if of_library else self.inner(z1, z2)


def own_parameters(target: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class's constructor, or of a function after its two views.

    A library's model, and defaults that no record can hold, are the library's own.
    """
    given = [*inspect.signature(target).parameters.values()]
    if not isinstance(target, type):
        given = [p for p in given if p not in given[:2] or p.kind not in POSITIONAL]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = {p.name: p for p in given if p.kind not in variable}
    if not is_from(target, *LIBRARIES):
        return known
    own, kinds = (p for p in known.values() if p.name != "model"), bool | float | int | str | None
    return {p.name: p for p in own if p.default is p.empty or isinstance(p.default, kinds)}


def check_values(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raise unless values are of the kinds of their defaults, and leave the gathering to us."""
    for name, value in values.items():
        default = defaults.get(name)
        if name.startswith("gather") and value:
            fault = f"must be {default}: a loss gets the views of all processes here"
            raise UserError(f"{name} {fault}")
        if isinstance(default, bool | str):
            if not isinstance(value, type(default)):
                raise UserError(f"{name} must be a {type(default).__name__}, got {value!r}")
        elif isinstance(default, int | float):
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not (number and math.isfinite(value)):
                raise UserError(f"{name} must be a finite number, got {value!r}")


def takes_two_views(title: str, target: Any) -> None:
    """Raise unless a module's or a function's call takes exactly two tensors, by their places."""
    if is_from(target, *LIBRARIES):
        return
    module = isinstance(target, type) and issubclass(target, nn.Module)
    try:
        call = inspect.signature(target.forward if module else target)
    except ValueError:
        raise UserError(f"{title} does not say what it takes: call it in a ViewLoss") from None
    given = [*call.parameters.values()][module:]
    needed = [p for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    several = any(p.kind is p.VAR_POSITIONAL for p in given)
    two = len(needed) == 2 and needed == given[:2] and given[1].kind in POSITIONAL
    tensors = all(
        p.annotation in (p.empty, Any, "Any") or "Tensor" in str(p.annotation) for p in needed
    )
    if not (several or (two and tensors)):
        shown = call.replace(parameters=given)
        raise UserError(
            f"{title} takes {shown}, not two views: write a class of contrastbench.losses.ViewLoss "
            "that calls it, and give --loss FILE:CLASS"
        )
