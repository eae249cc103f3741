"""Gradients are right, whatever a loss detaches."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.overrides import TorchFunctionMode

from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws.assertions import Build, law, learned_parameters
from contrastbench.losses.laws.random_contrasts import random_views, some_pairing


@law(
    "the gradient is not the derivative of the value",
    "write detach() where a weight is a constant, not .item() or torch.no_grad()",
)
def check_gradient(build: Build, seed: int) -> None:
    """The gradient is the difference quotient's, whatever is detached taken as constant."""
    loss, pairing, views = build(), some_pairing(seed), random_views(seed, 3, dim=3, grad=True)
    frozen, leaves = FrozenDetach(), (*views, *learned_parameters(loss))
    try:
        gradcheck(lambda *v: frozen.call(loss, pairing(v[:3])), leaves, atol=1e-6, rtol=1e-4)
    except GradcheckError as error:
        # what torch says of the two derivatives, without their numbers
        raise AssertionError(str(error).split("\n")[0].rstrip(", ")) from None


class FrozenDetach(TorchFunctionMode):
    """Replays what every detach() gave in the first call.

    So a loss's detached weights are the constants in the difference quotient that they are in its
    gradient.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []
        self.position = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not torch.Tensor.detach:
            return result
        if self.position == len(self.kept):
            self.kept.append(result.clone())
        self.position += 1
        return self.kept[self.position - 1]

    def call(self, loss: Loss, contrast: Contrast) -> Tensor:
        """The loss with the first call's weights."""
        self.position = 0
        with self:
            value: Tensor = loss(contrast)
        return value
