"""RényiCL's multi-layer perceptron with maxout, its heads, and the momentum copy that gives targets."""

import copy
import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from contrastbench.domains.recipes import TabularRecipe


class Maxout(nn.Module):
    """(n, sets * d) to (n, d): the largest of the sets (Goodfellow et al. 2013)."""

    def __init__(self, sets: int) -> None:
        super().__init__()
        self.sets = sets

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (self.sets, -1)).amax(dim=1)

    def extra_repr(self) -> str:
        return f"sets={self.sets}"


def layer(inputs: int, outputs: int, batch_norm: bool) -> list[nn.Module]:
    """Linear, batch norm, ReLU."""
    norm: list[nn.Module] = [nn.BatchNorm1d(outputs)] if batch_norm else []
    return [nn.Linear(inputs, outputs, bias=not batch_norm), *norm, nn.ReLU()]


def perceptron(widths: Sequence[int], batch_norm: bool, maxout: int) -> nn.Sequential:
    """Layers of those widths, the first being the inputs; the last is linear with maxout unless there is one set."""
    hidden = widths if maxout == 1 else widths[:-1]
    layers = [module for a, b in pairwise(hidden) for module in layer(a, b, batch_norm)]
    if maxout > 1:
        layers += [nn.Linear(widths[-2], widths[-1]), Maxout(maxout)]
    return nn.Sequential(*layers)


def head(inputs: int, hidden: int, outputs: int, batch_norm: bool) -> nn.Sequential:
    """A two-layer head."""
    return nn.Sequential(*layer(inputs, hidden, batch_norm), nn.Linear(hidden, outputs))


class TabularModel(nn.Module):
    """Encoder, projection and, for query_key, prediction head and target network.

    The target network is a copy of encoder and projection that follows them as in MoCo v3: a moving average of the
    weights whose momentum rises to 1 along half a cosine; its batch norm keeps statistics of its own.

    Args:
        inputs: columns of the table.
        recipe: widths, pairing and momentum.
        steps: training steps until the momentum is 1.
    """

    updates: Tensor

    def __init__(self, inputs: int, recipe: TabularRecipe, steps: int) -> None:
        super().__init__()
        (hidden, outputs), norm = recipe.projection, recipe.batch_norm
        self.encoder = perceptron([inputs, *recipe.widths], norm, recipe.maxout)
        self.projector = head(recipe.widths[-1] // recipe.maxout, hidden, outputs, norm)
        self.predictor: nn.Module = nn.Identity()
        self.momentum, self.steps = recipe.ema, steps
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))
        if recipe.pairing == "query_key":
            if recipe.predictor:
                self.predictor = head(outputs, hidden, outputs, norm)
            self.target = copy.deepcopy(self.online).requires_grad_(False)

    @property
    def online(self) -> nn.Sequential:
        """Encoder and projection."""
        return nn.Sequential(self.encoder, self.projector)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) embeddings of rows, as anchors."""
        return self.predictor(self.projector(self.encoder(x)))

    @torch.no_grad()
    def targets(self, *views: Tensor) -> list[Tensor]:
        """(n, d) embeddings of rows as keys, without gradient."""
        return [self.target(view) for view in views]

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target's weights towards the online ones; once for each step, before its targets are computed."""
        share = self.momentum_now()
        for target, online in zip(self.target.parameters(), self.online.parameters(), strict=True):
            target.lerp_(online, 1 - share)
        self.updates += 1

    def momentum_now(self) -> float:
        """The momentum of the next update."""
        done = min(1.0, int(self.updates) / max(1, self.steps))
        return 1 - (1 - self.momentum) * (1 + math.cos(math.pi * done)) / 2


class Raw(nn.Module):
    """The features as they are, in a model's place: the reference that an encoder must beat."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Identity()
