"""What each of two processes does in test_distributed.py.

A module of its own, so that spawned processes find it.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.distributed import gather
from contrastbench.losses.laws.random_contrasts import PAIRINGS, random_views

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
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD
    )
    views = [v.chunk(WORLD)[rank] for v in random_views(0, 6)]
    torch.save(gradients(DistributedDataParallel(encoder()), views), f"{folder}/{rank}.pt")
    dist.destroy_process_group()
