"""Make optimizers and learning-rate schedules by the names that recipes use."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim

from contrastbench.domains.recipe import Recipe

TRUST = 1e-3  # of LARS: the rate of a matrix by its length over its gradient's
ParameterGroup = dict[str, Any]  # of an optimizer: params, and what is not the optimizer's default


def make_optimizer(
    recipe: Recipe, parameters: Iterable[nn.Parameter], own_groups: Sequence[ParameterGroup] = ()
) -> optim.Optimizer:
    """Make the recipe's optimizer for the trained parameters.

    Args:
        own_groups: of the loss, with rates of their own or the recipe's; they are not decayed.
    """
    trained = {"params": [p for p in parameters if p.requires_grad]}
    groups = [trained, *({"weight_decay": 0.0, **group} for group in own_groups)]
    if recipe.optimizer == "sgd":
        decay = recipe.weight_decay
        return optim.SGD(groups, recipe.lr, recipe.momentum, weight_decay=decay, fused=True)
    if recipe.optimizer == "lars":
        decays = (group.pop("weight_decay", recipe.weight_decay) for group in groups)
        groups = [{**group, "decay": decay} for group, decay in zip(groups, decays, strict=True)]
        return LARS(groups, recipe.lr, recipe.momentum)
    kind = optim.AdamW if recipe.optimizer == "adamw" else optim.Adam
    return kind(groups, recipe.lr, weight_decay=recipe.weight_decay, fused=True)


class LARS(optim.SGD):
    """SGD with momentum, its rate scaled for each matrix (You et al. 2017), as in MoCo v3.

    v <- momentum * v + trust * |w| / |g + decay * w| * (g + decay * w), w <- w - lr * v. Biases and
    the weights of batch norm are neither scaled nor decayed.
    """

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Scale the gradients, and take a step of SGD with them."""
        for group in self.param_groups:
            for weight in (p for p in group["params"] if p.grad is not None and p.ndim > 1):
                update = weight.grad.add(weight, alpha=group["decay"])
                own, other = weight.norm(), update.norm()
                weight.grad = update * torch.where(own * other > 0, TRUST * own / other, 1.0)
        super().step()


def make_schedule(
    recipe: Recipe, optimizer: optim.Optimizer, steps: int, steps_per_epoch: int, done: int = 0
) -> optim.lr_scheduler.LambdaLR:
    """Make the recipe's learning-rate schedule over that many steps.

    The rate is constant, or falls to zero by half a cosine or by a line. A warm-up is a line from
    zero up to the highest rate, from where the schedule starts.

    Args:
        done: steps that an interrupted training has behind it.
    """
    warming: float = getattr(recipe, "warmup", 0.0)  # epochs
    # in this order, as by epochs from the beginning: another one may round to another step
    warmup = round(steps * warming / (steps / steps_per_epoch)) if steps else 0

    def share(step: int) -> float:
        if step < warmup:
            return step / warmup
        progress = (step - warmup) / max(1, steps - warmup)
        shares = {
            "constant": 1.0,
            "cosine": 0.5 * (1 + math.cos(math.pi * progress)),
            "linear": 1 - progress,
        }
        return shares[recipe.schedule]

    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    return optim.lr_scheduler.LambdaLR(optimizer, share, last_epoch=done - 1)


def moments_of(optimizer: optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{key}": tensor
        for number, moments in state.items()
        for key, tensor in moments.items()
        if tensor is not None
    }


def load_moments(optimizer: optim.Optimizer, named: Mapping[str, Tensor]) -> None:
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in named.items():
        number, key = name.split(".", 1)
        parameter = trained[int(number)]
        if tensor.shape == parameter.shape:  # fused optimizers walk both memories at once
            tensor = torch.empty_like(parameter).copy_(tensor)
        moments.setdefault(int(number), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
