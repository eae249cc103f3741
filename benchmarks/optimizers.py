"""Optimizers and learning-rate schedules by the names that recipes use."""

import math
from collections.abc import Iterable

from torch import nn, optim

from contrastbench.domains.recipes import Recipe


def make_optimizer(recipe: Recipe, parameters: Iterable[nn.Parameter]) -> optim.Optimizer:
    """The recipe's optimizer on the parameters that are trained."""
    trained = [p for p in parameters if p.requires_grad]
    if recipe.optimizer == "sgd":
        return optim.SGD(trained, recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay, fused=True)
    return optim.Adam(trained, recipe.lr, weight_decay=recipe.weight_decay, fused=True)


def make_schedule(recipe: Recipe, optimizer: optim.Optimizer, steps: int) -> optim.lr_scheduler.LambdaLR:
    """The recipe's learning rate over that many steps: constant, or half a cosine down to zero."""

    def share(step: int) -> float:
        return 0.5 * (1 + math.cos(math.pi * step / max(1, steps))) if recipe.schedule == "cosine" else 1.0

    return optim.lr_scheduler.LambdaLR(optimizer, share)
