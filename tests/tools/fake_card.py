"""A step of a domain on tensors that torch takes for those of a CUDA device.

They have shapes and no values, so that torch chooses the operations that it would on a card, such
as those of cuDNN. Views are made on the CPU, because they read values. The backward pass asks the
driver, and sparse neighbours of graphs cannot be such tensors: the shadow device has both. Where
torch knows the shadow device it asks the driver too, so this runs in a process of its own.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.utils.stateless import _reparametrize_module
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

import cuda_kernels
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.domains.registry import declaration
from contrastbench.losses import LossSpec, blocks, get_loss
from resumed import few_sentences

TINY: dict[str, dict[str, Any]] = {  # on top of each domain's tiny recipe
    "image": {"limit": 40, "batch_size": 8, "width": 0.0625},
    "sentence": {"limit": 48, "batch_size": 16},
    "tabular": {"limit": 200, "batch_size": 16, "widths": (8, 8)},
}


class Card(TorchFunctionMode):
    """Moves what meets a tensor of the card to the card."""

    def __init__(self) -> None:
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = args, kwargs or {}
        device = given[1].get("device")
        is_there = any(isinstance(one, FakeTensor) for one in tree_leaves(given))
        if not is_there and (device is None or torch.device(device).type != "cuda"):
            return func(*args, **given[1])
        args, named = tree_map(self.moved, given)
        with self.fake:
            return func(*args, **named)

    def moved(self, value: Any) -> Any:
        """Return a tensor on the card; a number stays, as CUDA takes it."""
        if not isinstance(value, Tensor) or isinstance(value, FakeTensor):
            return value
        fake = self.fake.from_tensor(value)
        with self.fake:
            return fake.to("cuda:0") if value.ndim else fake


class Checked(TorchDispatchMode):
    """Asks of each operation on the card whether CUDA has it."""

    def __init__(self) -> None:
        super().__init__()
        self.names = set[str]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = (argument.name for argument in func._schema.arguments)
        values = {**dict(zip(named, args, strict=False)), **(kwargs or {})}
        operands = [one for one in tree_leaves(values) if isinstance(one, Tensor)]
        if func.namespace == "aten" and any(one.device.type == "cuda" for one in operands):
            self.names.add(func.name())
            cuda_kernels.check(func, values, operands)
        return func(*args, **(kwargs or {}))


def step(domain: str, card: Card) -> Tensor:
    """Return the loss of a batch, whose encoder is on the card."""
    about = declaration(domain)
    recipe = {**about.tiny, **TINY[domain]}
    experiment = Experiment(domain, about.default, LossSpec("infonce"), recipe)
    opened = open_domain(experiment, 0, None, torch.device("cpu"))
    model, loss = opened.model().train(), get_loss("infonce")
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    fakes = {name: card.fake.from_tensor(one.detach()) for name, one in named.items()}
    with card.fake:
        weights = {name: one.to("cuda:0") for name, one in fakes.items()}
    with _reparametrize_module(model, weights), card:
        contrasts = opened.contrasts(model, next(iter(opened.batches(0))))
        return torch.stack([loss(contrast) for contrast in contrasts]).sum()


def operations(domain: str) -> list[str]:
    """Return the operations of a step on the card, each of which CUDA has."""
    blocks.memory = lambda device: 80 * 2**30  # type: ignore[assignment]
    with few_sentences(), Checked() as checked:
        assert step(domain, Card()).device.type == "cuda"
    return sorted(checked.names)
