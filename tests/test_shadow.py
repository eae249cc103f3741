"""The shadow device: what it refuses, what it counts, and that it computes as the CPU does."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from contrastbench.domains.random import generator
from shadow import Counts, ShadowTensor, counting, shadow

SHADOW = shadow()


def counted(work: Callable[[], object]) -> Counts:
    with counting() as counts:
        work()
    return counts


@pytest.fixture
def x() -> Tensor:
    return torch.arange(12.0, device=SHADOW).view(3, 4)


MIXED: dict[str, Callable[[Tensor], object]] = {
    "sum": lambda x: x + torch.ones(4),
    "product": lambda x: x @ torch.ones(4),
    "written": lambda x: torch.ones(3, 4).add_(x),
    "number written": lambda x: torch.ones(()).add_(x.sum()),
    "list": lambda x: torch.cat([x, torch.ones(1, 4)]),
    "stacked numbers": lambda x: torch.stack([x.sum(), torch.ones(())]),
    "gathered": lambda x: x.gather(0, torch.zeros(1, 4, dtype=torch.long)),
    "of the processor's by its own index": lambda x: torch.ones(3)[x[0].long()],
    "numpy": lambda x: x.numpy(),
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_of_two_devices_are_refused(name: str, x: Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"same device|should be either|not supported"):
        MIXED[name](x)


def test_numbers_of_the_processor_are_taken_along(x: Tensor) -> None:
    counts = counted(lambda: torch.where(x > torch.tensor(3.0), x, torch.tensor(0.0)))
    assert (counts.launches, counts.host_reads, counts.copies) == (2, 0, 0)


# launches, host reads, copies to the device
COUNTED: dict[str, tuple[Callable[[Tensor], object], tuple[int, int, int]]] = {
    "arithmetic": (lambda x: (2 * x + 1).exp_(), (3, 0, 0)),
    "views": (lambda x: x.T[1:].unsqueeze(0).expand(2, -1, -1).detach(), (0, 0, 0)),
    "allocation": (lambda x: torch.empty_like(x).shape, (0, 0, 0)),
    "a number": (lambda x: float(x[0, 0]), (0, 1, 0)),
    "a condition": (lambda x: bool((x > 3).any()), (2, 1, 0)),
    "a list": (lambda x: x.tolist(), (0, 1, 0)),
    "to the processor": (lambda x: x.cpu(), (0, 1, 0)),
    "written to the processor": (lambda x: torch.zeros(3, 4).copy_(x), (0, 1, 0)),
    "another type": (lambda x: x.double(), (1, 0, 0)),
    "where": (lambda x: x.nonzero(), (1, 1, 0)),
    "rows by a mask": (lambda x: x[x[:, 0] > 3], (2, 1, 0)),
    "written by a mask": (lambda x: x.__setitem__(x > 3, x[x > 3]), (4, 2, 0)),
    "filled by a mask": (lambda x: x.masked_fill_(x > 3, 0), (2, 0, 0)),
    "classes": (lambda x: x.unique(), (1, 1, 0)),
    "repeats": (lambda x: x[0].repeat_interleave(x[0].long()), (3, 1, 0)),
    "repeats, their sum known": (
        lambda x: x[0].repeat_interleave(x[0].long(), output_size=6),
        (3, 0, 0),
    ),
    "a list as a tensor": (lambda x: x.new_tensor([1.0, 2.0]), (0, 0, 1)),
    "from the processor": (lambda x: torch.ones(2).to(SHADOW), (0, 0, 1)),
    "rows by a list": (lambda x: x[[0, 2]], (1, 0, 1)),
    "draws": (lambda x: torch.rand(3, generator=generator(SHADOW, 1), device=SHADOW), (1, 0, 0)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts(name: str, x: Tensor) -> None:
    work, expected = COUNTED[name]
    counts = counted(lambda: work(x))
    assert (counts.launches, counts.host_reads, counts.copies) == expected, counts


def test_copies_are_counted_in_bytes() -> None:
    assert counted(lambda: torch.ones(5, dtype=torch.float64).to(SHADOW)).copied_bytes == 40


def network() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(144, 5), nn.Dropout(0.5), nn.Linear(5, 2))


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_a_training_ends_in_the_bits_of_the_processor(kind: type, bf16: bool) -> None:
    def trained(device: torch.device) -> list[Tensor]:
        net = network().to(memory_format=torch.channels_last).to(device)
        optimizer = kind(net.parameters(), lr=0.1, fused=True)
        x = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(device)
        torch.manual_seed(2)
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                y = checkpoint(net, x, use_reentrant=False, preserve_rng_state=False)
                value = torch.cat([y, y.float()]).float().square().mean()
            value.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
        return [p.cpu() for p in copy.deepcopy(net).state_dict().values()]

    for ours, theirs in zip(trained(SHADOW), trained(torch.device("cpu")), strict=True):
        assert torch.equal(ours, theirs)


def test_a_model_comes_and_goes() -> None:
    net = network().to(SHADOW)
    assert all(isinstance(p, ShadowTensor) and p.device == SHADOW for p in net.parameters())
    net.load_state_dict(network().state_dict())
    assert {p.device.type for p in net.cpu().parameters()} == {"cpu"}


def test_random_numbers_of_all_devices_can_be_put_aside() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        inside = torch.rand(2)
    assert torch.equal(inside, torch.rand(2, generator=torch.Generator().manual_seed(7)))


def test_an_error_of_a_backward_pass_is_raised_after_it(x: Tensor) -> None:
    """Raised within it, in a thread of torch's, it would end the process."""

    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient + torch.ones(4)

    with pytest.raises(RuntimeError, match="same device"):
        Mixed.apply(x.requires_grad_()).sum().backward()
    (2 * x).sum().backward()
