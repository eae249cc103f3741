"""RényiCL's multi-layer perceptron with maxout, and its heads."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from contrastbench.domains.model import ContrastiveModel, head, layer
from contrastbench.domains.reading import refuse
from contrastbench.domains.tabular import TabularRecipe

CHUNK = 4096  # rows embedded at once


class Maxout(nn.Module):
    """(n, sets * d) to (n, d): the largest of the sets (Goodfellow et al. 2013)."""

    def __init__(self, sets: int) -> None:
        super().__init__()
        self.sets = sets

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (self.sets, -1)).amax(dim=1)


def perceptron(widths: Sequence[int], batch_norm: bool, maxout: int) -> nn.Sequential:
    """Layers of those widths, inputs first; the last is linear with maxout if it has sets."""
    hidden = widths if maxout == 1 else widths[:-1]
    layers = [module for a, b in pairwise(hidden) for module in layer(a, b, batch_norm)]
    if maxout > 1:
        layers += [nn.Linear(widths[-2], widths[-1]), Maxout(maxout)]
    return nn.Sequential(*layers)


class TabularModel(ContrastiveModel):
    """Encoder, projection and, for query_key, prediction head and target network."""

    def __init__(self, inputs: int, recipe: TabularRecipe, steps: int) -> None:
        (hidden, outputs), norm = recipe.projection, recipe.batch_norm
        encoder = perceptron([inputs, *recipe.widths], norm, recipe.maxout)
        projector = head(recipe.widths[-1] // recipe.maxout, hidden, outputs, norm)
        moco = recipe.pairing == "query_key"
        predictor = head(outputs, hidden, outputs, norm) if moco and recipe.predictor else None
        super().__init__(encoder, projector, predictor, recipe.ema if moco else None, steps)


@torch.no_grad()
def embed_rows(encoder: nn.Module, x: Tensor) -> Tensor:
    """(n, d) embeddings of the rows."""
    z = torch.cat([encoder(chunk) for chunk in x.split(CHUNK)])
    refuse("", (not bool(z.isfinite().all()), "embeddings are not finite: the encoder diverged"))
    return z
