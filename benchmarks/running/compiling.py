"""Compile a training for `--compile`: its encoder, and on CUDA its whole step as one graph.

A small network's step is hundreds of launches, between which a card waits. A CUDA graph is launched
once: it repeats the kernels of one step, from views to gradients, on the memory of that step. So
each batch is copied there first, and generators that the graph knows are set as before any
step: the numbers are those of ordinary steps on such batches. The optimizer follows outside, a
handful of fused launches, since its learning rate is a number of the host.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.benchmarks.running import ranks
from contrastbench.domains.base import Domain
from contrastbench.errors import tell
from contrastbench.losses.base import Loss, definition, summands

ENCODER, STEP = "encoder", "step"  # what a record says to be compiled
WARM_UP = 3  # ordinary steps before one is captured: kernels are compiled, chosen and loaded
GRAPHS_ON = ("cuda",)
OURS = "contrastbench.losses.library."

Gradients = Callable[[Any], Tensor]  # of a batch: the loss; gradients stay in the parameters


def compiled_parts(domain: Domain[Any, Any, Any], loss: Loss | None) -> list[str]:
    """Return what `--compile` compiles here, and say what it does not."""
    if loss is None:
        return []
    if ranks.world_size() > 1:
        tell("--compile changes nothing here: what processes say to each other is not compiled")
        return []
    reason = why_not_captured(domain, loss)
    if reason:
        does = "the encoder is compiled" if domain.compiles else "nothing is compiled"
        tell(f"--compile: {does}, steps are no CUDA graphs: {reason}")
    elif domain.other_as_graph:
        tell(f"--compile: {domain.other_as_graph}")
    return [ENCODER] * domain.compiles + [STEP] * (not reason)


def why_not_captured(domain: Domain[Any, Any, Any], loss: Loss) -> str:
    """Return what keeps a step from being a CUDA graph, or nothing."""
    if domain.device.type not in GRAPHS_ON:
        return f"the device is {domain.device.type}"
    for _, term in summands(loss):
        if not definition(term).__module__.startswith(OURS):
            return f"{term.name} is no loss of ours, and may compute on the host"
    return "positives are permuted by the host" if domain.recipe.permuted else domain.uncaptured


class CapturedSteps:
    """Take the first steps as they are, capture one, and replay it for all that follow.

    A batch of another form, such as the smaller last one of an epoch, is an ordinary step.

    Args:
        gradients: of a batch; it reads nothing from the device and seeds no generator.
        parameters: whose gradients it leaves.
    """

    def __init__(self, gradients: Gradients, parameters: Sequence[nn.Parameter]) -> None:
        self.gradients, self.parameters = gradients, parameters
        self.form: list[Any] | None = None
        self.done: float = 0  # ordinary steps on batches of this form
        self.replay: Callable[[], None] | None = None

    def __call__(self, batch: Any) -> Tensor:
        """Return the loss of a batch, and leave its gradients in the parameters."""
        if self.replay is None:
            self.prepare(batch)
        if self.replay is None or self.form != form(batch):
            return beside(partial(self.gradients, batch))
        refill(self.batch, batch)
        self.replay()
        for parameter, gradient in zip(self.parameters, self.captured, strict=True):
            parameter.grad = gradient
        return self.value.clone()

    def prepare(self, batch: Any) -> None:
        """Capture a step if enough of its form were taken, or say why that cannot be."""
        if self.done >= 0 and self.form != form(batch):
            self.form, self.done = form(batch), 0
        if self.done == WARM_UP:
            self.batch = copied(batch)
            rngs = [rng for _, rng in values(self.batch) if isinstance(rng, torch.Generator)]
            try:
                self.replay, self.value = capture(partial(self.gradients, self.batch), rngs)
                self.captured = [parameter.grad for parameter in self.parameters]
            except RuntimeError as error:
                tell(f"--compile: steps are no CUDA graphs here ({error}): they go on one by one")
                self.done = -math.inf
        self.done += 1


def beside(work: Callable[[], Tensor]) -> Tensor:
    """Work in a stream of its own, as torch asks of steps before a capture."""
    main, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        value = work()
    main.wait_stream(side)
    return value


def capture(
    work: Callable[[], Tensor], rngs: Sequence[torch.Generator]
) -> tuple[Callable[[], None], Tensor]:
    """Capture what work launches, which does not run yet: return what runs it, and its result."""
    graph = torch.cuda.CUDAGraph()
    for rng in rngs:
        graph.register_generator_state(rng)
    with torch.cuda.graph(graph):
        value = work()
    return graph.replay, value


def copied(batch: Any) -> Any:
    tensors = ((name, value) for name, value in values(batch) if isinstance(value, Tensor))
    return replace(batch, **{name: tensor.clone() for name, tensor in tensors})


def form(batch: Any) -> list[Any]:
    """Return what is the same of batches that one captured step takes."""
    return [
        value.shape if isinstance(value, Tensor) else value
        for _, value in values(batch)
        if not isinstance(value, torch.Generator)
    ]


def refill(held: Any, batch: Any) -> None:
    """Copy a batch into another's memory, and set the other's generators to its own."""
    for (_, old), (_, new) in zip(values(held), values(batch), strict=True):
        if isinstance(old, Tensor):
            old.copy_(new)
        elif isinstance(old, torch.Generator):
            old.set_state(new.get_state())


def values(batch: Any) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(batch, field.name)) for field in fields(batch))
