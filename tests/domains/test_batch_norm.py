"""Batch norm of a batch that is shared is torch's of the whole: threads stand for processes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from contrastbench.domains import model

KINDS = {
    (9, 5): (model.BatchNorm1d, nn.BatchNorm1d),
    (9, 5, 3, 2): (model.BatchNorm2d, nn.BatchNorm2d),
}
SHARES = ([9], [4, 5], [3, 0, 6])  # rows of each process
STEPS = 3


class Meeting:
    """Sums over threads in the place of processes."""

    def __init__(self, threads: int) -> None:
        self.all = threading.Barrier(threads, timeout=60)
        self.parts: dict[int, Tensor] = {}

    def all_sum(self, part: Tensor) -> Tensor:
        self.parts[threading.get_ident()] = part
        self.all.wait()
        total = sum(self.parts.values(), torch.zeros_like(part))
        self.all.wait()
        return total


def trained(norm: nn.Module, batches: list[Tensor], slopes: list[Tensor]) -> list[list[Tensor]]:
    """Return each step's values and its gradients by rows and by weights."""
    found = []
    for x, slope in zip(batches, slopes, strict=True):
        norm.zero_grad()
        rows = x.clone().requires_grad_()
        y = norm(rows)
        (y.square() * slope).sum().backward()
        assert rows.grad is not None
        found.append([y.detach(), rows.grad, *(p.grad.clone() for p in norm.parameters())])
    return found


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", KINDS)
@pytest.mark.parametrize("share", SHARES)
def test_shares_of_a_batch_are_normalised_as_the_whole(
    share: list[int], shape: tuple[int, ...], affine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = torch.Generator().manual_seed(0)

    def drawn() -> list[Tensor]:
        return [torch.randn(shape, generator=draws, dtype=torch.float64) for _ in range(STEPS)]

    batches, slopes = [3 * x + 2 for x in drawn()], drawn()
    ours, theirs = KINDS[shape]

    def make(kind: type[nn.Module]) -> nn.Module:
        norm = kind(shape[1], eps=1e-3, momentum=0.3, affine=affine, dtype=torch.float64)
        with torch.no_grad():
            for number, weight in enumerate(norm.parameters()):
                weight.copy_(torch.linspace(0.5 - number, 2, shape[1]))
        return norm

    whole = make(theirs)
    expected = trained(whole, batches, slopes)

    meeting, parts = Meeting(len(share)), [make(ours) for _ in share]
    monkeypatch.setattr(model, "world", lambda: 2)
    monkeypatch.setattr(model, "all_sum", meeting.all_sum)

    def of_rank(rank: int) -> list[list[Tensor]]:
        own = [[x.split(share)[rank] for x in of] for of in (batches, slopes)]
        return trained(parts[rank], *own)

    with ThreadPoolExecutor(len(share)) as pool:
        found = list(pool.map(of_rank, range(len(share))))
    for step, (y, rows, *weights) in enumerate(expected):
        ranks = [of[step] for of in found]
        close(torch.cat([rank[0] for rank in ranks]), y)
        close(torch.cat([rank[1] for rank in ranks]), rows)
        for number, gradient in enumerate(weights, start=2):
            close(sum((rank[number] for rank in ranks), torch.zeros_like(gradient)), gradient)
    for part in parts:
        for name, statistic in whole.state_dict().items():
            close(part.state_dict()[name], statistic)
        close(part.eval()(batches[0]), whole.eval()(batches[0]))


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
