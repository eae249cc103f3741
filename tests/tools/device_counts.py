"""Count what a training asks of an accelerator, without one.

`python tests/tools/device_counts.py infonce adnce` prints the counts of these losses.

An accelerator is idle while it waits: for launches, for what the host reads back before it goes on,
and for copies. They are counted on a device that is the CPU in disguise (`shadow`), for steps in
the midst of an epoch of each domain's tiny recipe. Wider networks and larger batches need as many,
deeper networks more. An operation of torch counts as one launch, though some are a few kernels.
"""

import copy
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch

from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.running.opening import make_cell_loss, open_domain
from contrastbench.benchmarks.running.training import AnyDomain, Look, train
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.losses import get_loss
from contrastbench.losses.base import Loss
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views
from contrastbench.losses.spec import LossSpec
from shadow import Counts, counting, shadow

DEFAULT = ("infonce", "adnce", "rmlcpc")
SIZE, DIM = 1024, 128  # 2N and columns of a loss alone
# epochs of several steps, none of which validates
STEPS: dict[str, dict[str, Any]] = {
    "graph": {"batch_size": 16},
    "image": {"epochs": 2},
    "sentence": {"eval_every": 100},
    "tabular": {"batch_size": 32},
}


def report(losses: Sequence[str]) -> Iterator[str]:
    """Yield two Markdown tables, a line at a time: steps of trainings, and losses alone."""
    shadow()
    yield (
        "| domain | loss | launches | host reads | copies | bytes | host reads between epochs "
        "| sizes new after an epoch's first step |"
    )
    yield "| --- | --- |" + " ---: |" * 6
    for domain in DOMAINS:
        for name in losses:
            step, between, new = training(domain, name)
            numbers = step.launches, step.host_reads, step.copies, step.copied_bytes
            counted = " | ".join(f"{number:,}" for number in numbers)
            yield f"| {domain} | {name} | {counted} | {between.host_reads} | {new} |"
    yield ""
    yield f"| loss alone, 2N = {SIZE}: launches | " + " | ".join(LAW_PAIRINGS) + " |"
    yield "| --- |" + " ---: |" * len(LAW_PAIRINGS)
    for name in losses:
        yield f"| {name} | " + " | ".join(alone(name, pairing) for pairing in LAW_PAIRINGS) + " |"


def training(domain: str, loss: str) -> tuple[Counts, Counts, int]:
    """Return the counts of a step, of the work between epochs, and of new sizes in an epoch.

    Memory of a size that was there before comes from torch's cache, without asking the device.
    """
    about = declaration(domain)
    experiment = Experiment(domain, about.default, LossSpec(loss), {**about.tiny, **STEPS[domain]})
    opened = open_domain(experiment, 0, None, shadow())
    made = make_cell_loss(Cell(experiment, 0, "", {}), opened)
    assert made is not None
    steps, last = steps_asked(opened, made), opened.steps() - 1
    new = {size for step in steps[1:last] for size in step.sizes} - steps[0].sizes.keys()
    return steps[1], steps[last] - steps[1], len(new)


def steps_asked(
    domain: AnyDomain, loss: Loss, look: Look = lambda seen, batch: seen
) -> list[Counts]:
    """Return the counts from each step's loss to the next one's.

    The last step of an epoch has the end of that epoch and the beginning of the next with it.
    """
    seen: list[Counts] = []

    def note(contrasts: Any, batch: Any) -> Any:
        seen.append(copy.deepcopy(counts))
        return look(contrasts, batch)

    with counting() as counts:
        train(domain, loss, look=note)
    return [after - before for before, after in pairwise(seen)]


def alone(name: str, pairing: str) -> str:
    """Launches of a loss and its gradient, with host reads if there are any."""
    views = [x.to(shadow()) for x in random_views(0, SIZE // 2, DIM, torch.float32)]
    loss = get_loss(name)
    loss.prepare_samples(SIZE)
    loss.to(shadow())
    embeddings = [view.requires_grad_() for view in views]
    with counting() as counts:
        loss(LAW_PAIRINGS[pairing](embeddings)).backward()
    return f"{counts.launches}" + (f", {counts.host_reads} reads" if counts.host_reads else "")


if __name__ == "__main__":
    for line in report(sys.argv[1:] or DEFAULT):
        print(line)
