"""Train on several devices: one process, a rank, for each, all taking the same steps.

Rank 0 alone reads checkpoints, evaluates and writes; the others wait for what it says. torchrun
starts the ranks, on one machine or several, or `launch` does.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch.distributed import TCPStore, rendezvous  # type: ignore[attr-defined]

from contrastbench.benchmarks.running import devices
from contrastbench.benchmarks.running.devices import choose_device, device_name
from contrastbench.benchmarks.running.launch import EXIT_OF_LOST, launched, started
from contrastbench.distributed import ProcessLost, process_lost
from contrastbench.errors import MEETING, UserError, tell

P = ParamSpec("P")
T = TypeVar("T")

RANK_TIMEOUT = timedelta(days=30)  # of those who wait for an evaluation
MEETING_TIMEOUT = timedelta(minutes=10)  # for all ranks to meet, and to make the same step
ANSWERING = timedelta(seconds=2)  # for a store whose port may be an old one
PORT = "contrastbench/port"  # of the first rank's store, in that of torchrun's agents
PARTING_SECONDS = 60  # seconds to finish a step for a rank whose launcher is gone
control_group: Any = None  # the group of what ranks say to each other, from CPU to CPU
agents: Any = None  # the store of torchrun's agents, which ends with its last reference


def world_size() -> int:
    """Return the number of ranks; 1 for a process of its own."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_first() -> bool:
    """Return whether this one writes."""
    return not dist.is_initialized() or dist.get_rank() == 0


def local_world_size() -> int:
    return int(os.environ["LOCAL_WORLD_SIZE"]) if dist.is_initialized() else 1


def own_device(name: str) -> str:
    """Return this rank's device: with several ranks, each has its own."""
    if world_size() == 1:
        return name
    kind = choose_device(name.partition(":")[0])
    return f"{kind}:{os.environ['LOCAL_RANK']}" if kind == "cuda" else kind


def by_first(step: Callable[P, T]) -> Callable[P, T]:
    """Let rank 0 alone take a step, whose result is that of all; its failure fails them all."""

    @wraps(step)
    def shared(*args: P.args, **kwargs: P.kwargs) -> T:
        if world_size() == 1:
            return step(*args, **kwargs)
        said: list[Any] = [None]
        try:
            if is_first():
                said = [(step(*args, **kwargs),)]
        finally:
            with process_lost():
                dist.broadcast_object_list(said, group=control_group)
        if said[0] is None:
            raise FirstFailed("rank 0 has said why")
        result: T = said[0][0]
        return result

    return shared


class FirstFailed(Exception):
    """The error of the other ranks when rank 0's work failed."""


def maximum_over_ranks(*numbers: int) -> list[int]:
    """Return the maximum of each number over all ranks, without using a device."""
    if world_size() == 1:
        return [*numbers]
    largest = torch.tensor(numbers)
    with process_lost():
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=control_group)
    return largest.tolist()


def from_all(value: T) -> list[T]:
    """Gather the values of all ranks."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    with process_lost():
        dist.all_gather_object(values, value, group=control_group)
    return values


@contextmanager
def joined_ranks(device: str, reads_input: bool = False) -> Iterator[None]:
    """Join the ranks that the environment describes, if it describes any.

    Args:
        device: the name of what all compute on, `cpu` or `cuda`.
        reads_input: the first rank reads its standard input, which is its parent's.
    """
    if not launched():
        yield
        return
    loud, ours = sys.stderr, started()
    first = os.environ["RANK"] == "0"
    if not first:  # which alone speaks
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        sys.stderr = os.fdopen(nowhere, "w")
    watch = end_with_parent if not ours or (first and reads_input) else end_with_input
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    try:
        check_rank_devices(device)
        with process_lost(), ended_by_signals():
            join_group(device)
        yield
    except ProcessLost as error:
        if not ours:  # else who started the ranks says which is gone
            tell(f"bench: {error}")
        sys.exit(EXIT_OF_LOST)
    except Exception as error:
        if ours or not isinstance(error, UserError | FirstFailed):  # which rank 0 says
            sys.stderr = loud
        raise
    if not is_first():
        with suppress(ProcessLost):  # until the first has written all, and ends
            from_all(None)


def check_rank_devices(device: str) -> None:
    """Raise unless every rank of this machine has a device of its own."""
    ranks = int(os.environ["LOCAL_WORLD_SIZE"])
    if device not in ("cpu", "cuda"):
        raise UserError(f"{ranks} processes and --device {device}: give cpu or cuda, each has one")
    if device == "cuda" and ranks > torch.cuda.device_count():
        raise UserError(
            f"{ranks} processes and {torch.cuda.device_count()} CUDA devices: each needs one, "
            "give fewer --devices or --device cpu"
        )


def join_group(device: str) -> None:
    global control_group
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if started():  # where the folder is gone, the others would wait
        Path(os.environ[MEETING].removeprefix("file://")).touch()
    met: dict[str, Any] = {"init_method": os.environ[MEETING]} if started() else {"store": store()}
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        rank=rank,
        world_size=world,
        timeout=MEETING_TIMEOUT,
        **met,
    )
    control_group = dist.new_group(backend="gloo", timeout=RANK_TIMEOUT)
    own = torch.device(own_device(device))
    devices.of_ranks[:] = from_all(device_name(own))


def store() -> TCPStore:
    """Return a new store of the first rank, by which those that torchrun started find each other.

    Agents keep their own store when they start all ranks again, with addresses of ranks that have
    ended. So the first rank's port there may be an old one: nobody answers, and it is asked again.

    Raises:
        DistNetworkError: the first rank does not come.
        UserError: nothing says where they meet.
    """
    global agents
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        agents, *_ = next(rendezvous("env://", rank, world, timeout=MEETING_TIMEOUT))
    except ValueError as error:
        raise UserError(f"{error}: let torchrun start the ranks, or unset WORLD_SIZE") from None
    host, ends = os.environ["MASTER_ADDR"], time.monotonic() + MEETING_TIMEOUT.total_seconds()
    if rank == 0:
        own = TCPStore(host, 0, None, True, timeout=MEETING_TIMEOUT, wait_for_workers=False)
        agents.set(PORT, str(own.port))
        return own
    while True:
        try:
            meeting = TCPStore(host, int(agents.get(PORT)), timeout=ANSWERING)
        except dist.DistNetworkError:
            if time.monotonic() > ends:
                raise
        else:
            meeting.set_timeout(MEETING_TIMEOUT)
            return meeting


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End at once by SIGTERM and Ctrl-C, since C++ that waits for ranks hears neither.

    Python's own handlers would run when the wait is over.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_with_input(_: int) -> None:
    """End this process when its standard input ends, where nothing is ever written."""
    os.read(0, 1)
    part()


def end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    part()


def part() -> None:
    """Send SIGTERM to this process, and kill it a minute later."""
    signal.alarm(PARTING_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
