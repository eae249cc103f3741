"""Train losses as `bench run` does, in an opened domain, with a function that observes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from joblib import cpu_count
from torch import Tensor, nn

from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.running.opening import loss_on_device, open_domain
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.training import AnyDomain, Diverged, Look, train
from contrastbench.domains.base import HasClasses
from contrastbench.domains.recipe import Recipe
from contrastbench.errors import UserError, tell
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.spec import LossSpec


@dataclass(frozen=True)
class Trainer:
    """A domain in which losses are trained."""

    domain: AnyDomain
    seed: int
    title: str

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of the trainings."""
        return self.domain.recipe

    def train(self, loss: Loss | None, look: Look | None = None) -> nn.Module:
        """The trained model, or the untrained one without a loss.

        Args:
            loss: what trains it.
            look: sees every step's contrasts on their way to the loss, and may change them.

        Raises:
            Diverged: the loss is no longer a number.
        """
        ready = None if loss is None else self.prepared(loss)
        return train(self.domain, ready, look=look)[0]

    def followed(
        self, loss: Loss, measure: Callable[[Sequence[Contrast]], Tensor], label: str
    ) -> Tensor:
        """Return what is measured in each step of a training, (steps, ...); fewer if it diverges.

        Args:
            loss: what trains.
            measure: reads a step's contrasts.
            label: what a line on a training that diverges calls it.
        """
        steps: list[Tensor] = []

        def look(contrasts: Sequence[Contrast], batch: Any) -> Sequence[Contrast]:
            steps.append(measure(contrasts))
            return contrasts

        try:
            self.train(loss, look)
        except Diverged as error:
            tell(f"{label}: {error}; the curve ends there")
        return torch.stack(steps).cpu()

    def prepared(self, loss: Loss) -> Loss:
        """The loss ready for the domain's contrasts, drawn by the seed.

        Raises:
            UserError: it needs classes, and this recipe does not pair by them.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return loss_on_device(loss, self.domain)

    @property
    def with_classes(self) -> HasClasses:
        """Return the domain, if it has classes.

        Raises:
            UserError: it has none.
        """
        if not isinstance(self.domain, HasClasses):
            raise UserError("this analysis needs classes, but this domain has none: use another")
        return self.domain


def trainer_of(work: Work) -> Trainer:
    """Open the domain in which the losses of an analysis are trained, by its one seed."""
    (seed,) = work.seeds
    return open_trainer(work.experiment, seed, work.options)


def open_trainer(experiment: Experiment, seed: int, options: Options) -> Trainer:
    """The experiment's dataset in its domain, ready to train on.

    Raises:
        UserError: there is nothing to train on, or nothing to train.
    """
    recipe = experiment.full_recipe
    if not recipe.trainable or recipe.epochs == 0:
        raise UserError(
            "this recipe trains nothing: give it an encoder with weights and epochs of at least 1"
        )
    device = open_device(options.device, options.deterministic, options.tf32)
    domain = open_domain(experiment, seed, options.data_root, device)
    if domain.steps() == 0:
        raise UserError(
            f"{experiment.dataset} has fewer samples than one batch of {recipe.batch_size}: "
            "give a smaller --recipe batch_size"
        )
    torch.set_num_threads(options.threads or min(domain.threads, cpu_count()))
    return Trainer(domain, seed, f"{experiment.domain} {experiment.dataset}, seed {seed}")


def training_loss(loss: LossSpec) -> Loss:
    """The loss that trains; "none" does not."""
    found = loss.make()
    if found is None:
        raise UserError("the loss none trains nothing: name another loss (bench list losses)")
    return found
