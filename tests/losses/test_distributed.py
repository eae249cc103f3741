"""Two processes with gathered negatives train like one process with the whole batch."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from contrastbench.benchmarks.random_contrasts import PAIRINGS, random_views
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.distributed import gather

NAMES = [*LOSSES, "infonce + 0.5*dar"]
PAIRS = ["both_views", "both_views with positives", "other_view", "query_key"]
WORLD = 2
Gradients = dict[tuple[str, str], list[Tensor]]


def encoder() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(8, 6, dtype=torch.float64)


def gradients(model: nn.Module, views: Sequence[Tensor]) -> Gradients:
    """The parameters' gradients for every loss and pairing."""
    found: Gradients = {}
    for name in NAMES:
        for pair in PAIRS:
            model.zero_grad()
            sizes = [len(v) for v in views]
            z = [gather(part) for part in model(torch.cat([*views])).split(sizes)]
            get_loss(name)(PAIRINGS[pair](z)).backward()
            found[name, pair] = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return found


def worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    views = [v.chunk(WORLD)[rank] for v in random_views(0, 6)]
    torch.save(gradients(DistributedDataParallel(encoder()), views), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[Gradients]:
    folder: Path = tmp_path_factory.mktemp("gloo")
    spawn(worker, args=(str(folder),), nprocs=WORLD)  # type: ignore[no-untyped-call]
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.fixture(scope="module")
def one_process() -> Gradients:
    return gradients(encoder(), random_views(0, 6))


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_that_of_the_concatenated_batch(
    name: str, two_processes: list[Gradients], one_process: Gradients
) -> None:
    for pair in PAIRS:
        for rank in range(WORLD):
            torch.testing.assert_close(two_processes[rank][name, pair], one_process[name, pair], rtol=1e-12, atol=1e-12)
        assert any(g.abs().max() > 1e-3 for g in one_process[name, pair])


def test_gather_alone_is_the_identity() -> None:
    z = torch.eye(3)
    assert gather(z) is z
