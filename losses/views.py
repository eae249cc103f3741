"""Losses of the embeddings of two whole views, which see coordinates and lengths, not scores."""

from types import MappingProxyType

import torch
from torch import Tensor

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, widen

NEEDS_VIEWS = (
    "takes two whole views of each sample, which this recipe does not pair: "
    "leave its pairing and further views at their defaults"
)
SCORES_ONLY = "it takes whole views, and this law is about scores"
COORDINATES = "it takes whole views, whose coordinates may matter"
NOT_OF_VIEWS = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("terms", "sign", "positives", "negatives", "closer positives"),
                *("holes", "padding", "repeated positives", "repeated anchors", "tiles"),
                "no negatives",
            ),
            SCORES_ONLY,
        ),
        "rotation": COORDINATES,
        "second gradient": "no training differentiates a loss of whole views twice",
    }
)


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
