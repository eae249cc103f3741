"""Contrastive losses: `get_loss(name, **params)` on a `Contrast` that a pairing function builds.

>>> import torch
>>> from contrastbench.losses import both_views, get_loss
>>> loss = get_loss("adnce", temperature=0.4, mu=0.7, sigma=0.5)
>>> loss(both_views(torch.eye(4), torch.eye(4)))
tensor(0.4005)
"""

import importlib
from typing import TYPE_CHECKING, Any

from contrastbench.errors import UserError
from contrastbench.losses.registry import LOSSES
from contrastbench.losses.spec import LossSpec, get_loss

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss, ScoreLoss, Scores
    from contrastbench.losses.contrast import (
        Contrast,
        both_views,
        indexed,
        other_view,
        own_view,
        part_of,
        query_key,
        same_class,
        whole_row,
    )
    from contrastbench.losses.views import ViewLoss

__all__ = [
    "LOSSES",
    "Contrast",
    "Loss",
    "LossSpec",
    "ScoreLoss",
    "Scores",
    "UserError",
    "ViewLoss",
    "both_views",
    "get_loss",
    "indexed",
    "other_view",
    "own_view",
    "part_of",
    "query_key",
    "same_class",
    "whole_row",
]

# Names that need torch are imported on first use, so that listing losses and rendering tables stay
# instant.
_MODULES = {
    **dict.fromkeys(["Loss", "ScoreLoss", "Scores"], "contrastbench.losses.base"),
    **dict.fromkeys(
        [
            *("Contrast", "both_views", "indexed", "other_view", "own_view", "part_of"),
            *("query_key", "same_class", "whole_row"),
        ],
        "contrastbench.losses.contrast",
    ),
    "ViewLoss": "contrastbench.losses.views",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
