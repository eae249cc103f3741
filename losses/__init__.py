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
        queued,
        same_class,
        whole_of,
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
    "queued",
    "same_class",
    "whole_of",
    "whole_row",
]

WITH_TORCH = ("base", "contrast", "views")  # imported at first use: lists and tables stay instant


def __getattr__(name: str) -> Any:
    for module in WITH_TORCH if name in __all__ else ():
        names = vars(importlib.import_module(f"{__name__}.{module}"))
        if name in names:
            return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
