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
    kind = optim.AdamW if recipe.optimizer == "adamw" else optim.Adam
    return kind(trained, recipe.lr, weight_decay=recipe.weight_decay, fused=True)


def make_schedule(recipe: Recipe, optimizer: optim.Optimizer, steps: int, done: int = 0) -> optim.lr_scheduler.LambdaLR:
    """The recipe's learning rate over that many steps: constant, or half a cosine or a line down to zero.

    Args:
        recipe: names the schedule and its highest rate.
        optimizer: whose rate it is.
        steps: of the whole training.
        done: steps that an interrupted training has behind it.
    """

    def share(step: int) -> float:
        progress = step / max(1, steps)
        shares = {"constant": 1.0, "cosine": 0.5 * (1 + math.cos(math.pi * progress)), "linear": 1 - progress}
        return shares[recipe.schedule]

    for group in optimizer.param_groups:
        group["initial_lr"] = recipe.lr
    return optim.lr_scheduler.LambdaLR(optimizer, share, last_epoch=done - 1)
