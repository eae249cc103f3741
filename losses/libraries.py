"""Call losses of libraries that take other arguments than two views.

- pytorch-metric-learning: `loss(embeddings, labels)`, or `ref_emb` for the second view,
- sentence-transformers: `loss(columns, labels)`, with a model that returns what it is given.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

LIBRARIES = ("pytorch_metric_learning", "sentence_transformers")
# losses of sentence-transformers that take a label for each pair of sentences
PAIR_LABELS = ("ContrastiveLoss", "OnlineContrastiveLoss", "CosineSimilarityLoss", "CoSENTLoss")


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
    """Return the loss of two views, (N, D) each, by one of the libraries.

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
