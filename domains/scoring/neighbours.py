"""Nearest neighbours, which need no fit."""

import torch
from torch import Tensor

from contrastbench.domains.scoring.classifiers import Classifier, Labelled
from contrastbench.losses.contrast import unit

NEIGHBOUR_BLOCK = 1024  # whose neighbours are looked for at once


def neighbours(train: Labelled, k: int, temperature: float) -> Classifier:
    """Weighted k nearest neighbours by cosine s (Wu et al. 2018), k at most all rows.

    A neighbour votes with the weight exp(s / temperature), relative to that of the nearest one, so
    that no temperature is too small.
    """
    k, keys, classes = min(k, len(train.y)), unit(train.x), int(train.y.max()) + 1

    def votes(rows: Tensor) -> Tensor:
        cosine, nearest = (unit(rows) @ keys.T).topk(k)  # (n, k), the largest first
        total = cosine.new_zeros(len(rows), classes)
        weight = ((cosine - cosine[:, :1]) / temperature).exp()
        return total.scatter_add_(1, train.y[nearest], weight)

    return Classifier(lambda x: torch.cat([votes(z) for z in x.split(NEIGHBOUR_BLOCK)]), {"k": k})
