"""Try a loss for some steps in each domain, as a run on its embedded data begins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.history import Diverged, embedding_health
from contrastbench.benchmarks.running.opening import loss_on_device, open_domain
from contrastbench.benchmarks.running.training import Run, generators_kept
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.errors import UserError, is_out_of_memory, is_termination, keep_streams
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws.battery import CheckResult
from contrastbench.losses.laws.causes import diagnosis
from contrastbench.losses.spec import LossSpec

STEPS = 20


@dataclass(frozen=True)
class Trial:
    """What was seen of a loss in a domain."""

    domain: str
    recipe: dict[str, Any] = field(default_factory=dict)
    losses: Sequence[float] = ()  # of each step
    health: dict[str, float] = field(default_factory=dict)  # after the last one
    error: str = ""  # why there was no last one
    diverged: bool = False
    raised: CheckResult | None = None  # by the loss


def trials(spec: LossSpec) -> Iterator[Trial]:
    """Try a loss in each of our domains, on its default data by its default recipe."""
    for domain in DOMAINS:
        work = Experiment(domain, declaration(domain).default, spec, {})
        try:
            yield trial(work)
        except UserError as error:
            yield Trial(domain, error=str(error))


def trial(work: Experiment) -> Trial:
    """Take the first steps of a training."""
    device, recipe = torch.device("cpu"), work.full_recipe.model_dump()
    domain, losses, seen = open_domain(work, 0, None, device), list[float](), list[Contrast]()

    def look(contrasts: Sequence[Contrast], batch: Any) -> Sequence[Contrast]:
        seen[:] = contrasts[:1]
        return contrasts

    def log(name: str, value: float, step: int) -> None:
        losses.extend([value] * (name == "loss"))

    torch.set_num_threads(domain.threads)
    with generators_kept(device), keep_streams():
        torch.manual_seed(0)
        made = work.loss.make()
        assert made is not None, "none is no loss to check"
        loss = loss_on_device(made, domain)
        run = Run(domain.model(), loss, domain.recipe, domain.steps(), None, log)
        run.model.train()
        try:
            for epoch, batch in islice(run.remaining(domain), STEPS):
                run.take_step(domain, epoch, batch, partial(run.gradients, domain, look))
            run.collect()
            run.check_weights()
        except Diverged as error:
            return Trial(work.domain, recipe, losses, error=str(error), diverged=True)
        except BaseException as error:  # a user's loss may raise anything, and call sys.exit
            if is_termination(error) or is_out_of_memory(error):
                raise
            cause = diagnosis(error, made)
            what = f"{work.domain}, step {run.history.step + 1}: {cause}"
            failed = CheckResult("tried", False, what, cause.remedy, str(cause.place or ""))
            return Trial(work.domain, recipe, losses, raised=failed)
    return Trial(work.domain, recipe, losses, embedding_health(seen[0]))
