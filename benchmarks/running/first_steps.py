"""Forecast a training from its first steps, for `bench plan --measure`."""

import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from statistics import median

from contrastbench.benchmarks.records.store import Fields
from contrastbench.benchmarks.running.devices import PeakMemory, synchronize
from contrastbench.benchmarks.running.draws import generators_kept
from contrastbench.benchmarks.running.training import AnyDomain, Run
from contrastbench.distributed import sharing
from contrastbench.losses.base import Loss

WARM_UP, MEASURED = 1, 3  # steps


def forecast(
    domain: AnyDomain, loss: Loss, clock: Callable[[], float] = time.perf_counter
) -> Fields:
    """Take some steps of a training, and return what all of its steps would take.

    The time is the median of the measured steps, times the number of steps. A step that only warms
    up counts where there is no other. The training is thrown away.

    Args:
        domain: the data, the model and the pairing.
        loss: what is made small.
        clock: returns seconds.
    """
    peak = PeakMemory(domain.device)
    with sharing():
        model = domain.model()
    with generators_kept(domain.device):
        run = Run(model, loss, domain.recipe, domain.steps(), None, None)
        model.train()
        loss.train()
        took = [end - begin for begin, end in pairwise(ends_of_steps(run, domain, clock))]
    step = median(took[WARM_UP:] or took)
    return {"seconds": step * run.steps, "steps": run.steps, "peak_memory_mib": peak.mib}


def ends_of_steps(run: Run, domain: AnyDomain, clock: Callable[[], float]) -> Iterator[float]:
    """Yield the time before the first step, and after each of the steps when the device is done."""
    yield clock()
    for epoch, batch in islice(run.remaining(domain), WARM_UP + MEASURED):
        run.take_step(domain, epoch, batch, None)
        synchronize(domain.device)
        yield clock()
