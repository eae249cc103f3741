"""The same function in several processes that share their batches.

A module of its own, so that new processes find it.
"""

from collections.abc import Callable
from multiprocessing import set_forkserver_preload
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import start_processes

from contrastbench.distributed import sharing

DOMAINS = ("graph", "image", "sentence", "tabular")
# what all processes need is imported once
set_forkserver_preload([f"contrastbench.domains.{name}.domain" for name in DOMAINS])


def in_processes(world: int, work: Callable[..., Any], folder: Path, *arguments: Any) -> list[Any]:
    """What the work returns in each of so many processes; plain values and tensors."""
    folder.mkdir(parents=True)
    arguments = world, work, folder, arguments
    start_processes(process, arguments, world, start_method="forkserver")  # type: ignore[no-untyped-call]
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(world)]


def process(
    rank: int, world: int, work: Callable[..., Any], folder: Path, arguments: tuple[Any, ...]
) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    with sharing():
        torch.save(work(*arguments), folder / f"{rank}.pt")
    dist.destroy_process_group()
