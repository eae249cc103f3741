"""Train in all domains: turn batches into contrasts, and a loss into steps.

A training can be interrupted at any step, and goes on with the same numbers.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from contrastbench.benchmarks.running import checkpoints, ranks
from contrastbench.benchmarks.running.compiling import ENCODER, STEP, CapturedSteps
from contrastbench.benchmarks.running.devices import circumstances
from contrastbench.benchmarks.running.history import Diverged, History, embedding_health
from contrastbench.benchmarks.running.optimizers import (
    load_moments,
    make_optimizer,
    make_schedule,
    moments_of,
)
from contrastbench.benchmarks.running.signals import Interruption
from contrastbench.distributed import average_gradients, sharing
from contrastbench.domains.base import Domain, Evaluation, Validates
from contrastbench.domains.progress import Progress
from contrastbench.domains.random import generator, seed_torch
from contrastbench.domains.recipe import Recipe
from contrastbench.errors import UserError, keep_streams, tell
from contrastbench.losses import blocks
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, permuted
from contrastbench.losses.settings import keep_settings

T = TypeVar("T")
AnyDomain = Domain[Any, Any, Any]
Log = Callable[[str, float, int], object]  # name, value, step
EPOCH = "loss of epoch"  # a mean loss, logged with the number of its epoch
# contrasts and batch of a step -> contrasts
Look = Callable[[Sequence[Contrast], Any], Sequence[Contrast]]

CPU = torch.device("cpu")
# tells the key of a loss's draws from that of the domain's, (seed, epoch, step), and of positives
LOSS_KEY, PERMUTED_KEY = 1, 2
SECONDS_BETWEEN_CHECKPOINTS = 300  # shorter trainings write none unless they are interrupted


def train(
    domain: AnyDomain,
    loss: Loss | None,
    checkpoint: Path | None = None,
    log: Log | None = None,
    compiled: Sequence[str] = (),
    look: Look | None = None,
) -> tuple[nn.Module, History]:
    """Return the trained model, or the best by validation; without a loss it stays untrained.

    A training that finds its checkpoint goes on from there with the numbers that it would have had
    uninterrupted. SIGTERM and Ctrl-C finish the step and write the checkpoint. Scores on the way
    (`score_at`) are of the model as it then is, and change no number of the training. Ranks share
    each batch and make the same steps; the first alone scores and writes. A loss that draws random
    numbers draws by seed, epoch and step; the generators of the process stand afterwards as before.

    Args:
        checkpoint: the file that an interrupted training leaves and finds.
        log: gets losses of steps and epochs and validation scores, as soon as they are numbers.
        look: sees every step's contrasts on their way to the loss, and may change them.
        compiled: what is compiled of it, see `compiling`.

    Raises:
        Diverged: the mean loss of an epoch, or of the steps between two validations, is not finite,
            or a weight is not where the model is scored.
        UserError: the recipe chooses the best model and the domain cannot, or the loss is none that
            can be trained with.
    """
    with sharing():
        model, recipe = domain.model(), domain.recipe
    if loss is None:
        return model, History()
    validate = validation_function(domain)
    # held back from here on: thrown into C++ that reads a checkpoint, it would come out as an error
    with Interruption() as interruption, generators_kept(domain.device):
        run = Run(model, loss, recipe, domain.steps(), checkpoint, log, compiled)
        run.stop_if_asked(interruption)
        gradients = partial(run.gradients, domain, look)
        quick = CapturedSteps(gradients, run.trained) if STEP in compiled else gradients
        form = domain.for_graph if STEP in compiled else lambda batch: batch
        with Progress(run.steps, "training", run.history.step) as progress:
            model.train()
            loss.train()
            for epoch, batch in run.remaining(domain):
                step = gradients if run.is_last else quick
                run.take_step(domain, epoch, form(batch), step)
                if run.validates and validate:
                    run.choose(run.scored(validate))
                if run.epoch_to_score:
                    run.keep(run.scored(domain.evaluate))
                progress.step(f"epoch {epoch + 1}")
                run.save_now_and_then(interruption)
    if run.best:
        model.load_state_dict(run.best)
    run.check_weights()
    return model, run.history


def step_loss(loss: Loss, contrasts: Sequence[Contrast]) -> Tensor:
    with keep_settings(loss.name), keep_streams():
        value = torch.stack([loss(contrast) for contrast in contrasts]).sum()
    if not value.requires_grad:
        raise UserError(
            f"{loss.name} has no gradient: compute it from the scores as tensors, without .item(), "
            ".detach(), .data or torch.no_grad()"
        )
    return value


def validation_function(domain: AnyDomain) -> Callable[[nn.Module], float] | None:
    """Return the function that chooses the best model, where the recipe asks for it."""
    if domain.recipe.validate_every is None:
        return None
    if not isinstance(domain, Validates):
        raise UserError(f"{type(domain).__name__} has no validate: validate_every must be None")
    return domain.validate


class Run:
    """A model and its loss in training, with everything that a checkpoint holds."""

    optimizer: Optimizer
    schedule: LambdaLR

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        recipe: Recipe,
        steps_per_epoch: int,
        checkpoint: Path | None,
        log: Log | None,
        compiled: Sequence[str] = (),
    ) -> None:
        self.model, self.loss, self.recipe = model, loss, recipe
        self.checkpoint, self.log, self.compiled = checkpoint, log, compiled
        if ENCODER in compiled:
            cast(nn.Module, model.encoder).compile()
        self.steps_per_epoch, self.steps = steps_per_epoch, recipe.length(steps_per_epoch)
        self.optimizer = make_optimizer(recipe, model.parameters(), loss.parameter_groups())
        self.history = History()
        self.best: checkpoints.Tensors = {}
        if checkpoint:
            self.resume(checkpoint)
        lengths = self.steps, steps_per_epoch
        self.schedule = make_schedule(recipe, self.optimizer, *lengths, self.history.step)
        # losses and norms that have not been asked for: asking waits for the device
        self.values: list[Tensor] = []
        self.norms: dict[str, Tensor] = {}
        self.started = self.saved = time.monotonic()

    def remaining(self, domain: AnyDomain) -> Iterator[tuple[int, Any]]:
        """Yield the epochs and batches from the next step on."""
        every = max(1, self.steps_per_epoch)
        first, done = divmod(self.history.step, every)
        for epoch in range(first, math.ceil(self.steps / every)):
            for batch in islice(domain.batches(epoch), done if epoch == first else 0, None):
                if self.history.step == self.steps:  # within an epoch
                    return
                yield epoch, batch

    def take_step(
        self, domain: AnyDomain, epoch: int, batch: Any, gradients: Callable[[Any], Tensor]
    ) -> None:
        self.loss.advance(self.history.step / max(1, self.steps - 1))
        with sharing():
            seed_generators(domain.device, domain.seed, epoch, self.history.step, LOSS_KEY)
            self.update(gradients(batch))

    def gradients(self, domain: AnyDomain, look: Look | None, batch: Any) -> Tensor:
        """Return the loss of a batch, and leave its gradients in the parameters."""
        self.optimizer.zero_grad()
        contrasts = domain.contrasts(self.model, batch)
        if share := float(self.recipe.permuted):
            epoch, step = self.history.step // self.steps_per_epoch, self.history.step
            rng = generator(CPU, domain.seed, epoch, step, PERMUTED_KEY)
            contrasts = [permuted(contrast, share, rng) for contrast in contrasts]
        seen = look(contrasts, batch) if look else contrasts
        if self.is_last:
            self.history.health |= embedding_health(seen[0])
        value = step_loss(self.loss, seen)
        value.backward()
        return value.detach()

    def update(self, value: Tensor) -> None:
        """Take one step of the optimizer, after which the loss is one of the history's."""
        average_gradients(parameter.grad for parameter in self.trained)
        if self.history.step == 0 or self.is_last:  # the length before it is clipped
            names = ["gradient_start"] * (self.history.step == 0) + ["gradient_end"] * self.is_last
            gradients = [p.grad for p in self.trained if p.grad is not None]
            self.norms |= dict.fromkeys(names, nn.utils.get_total_norm(gradients))
        if self.recipe.max_grad_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
        self.optimizer.step()
        self.schedule.step()
        self.values.append(value)
        self.history.step += 1
        if self.history.step % self.steps_per_epoch == 0 or self.history.step == self.steps:
            self.collect()
            losses = self.history.losses
            self.history.loss_by_epoch.append(math.fsum(losses) / len(losses))
            self.history.losses = []
            if self.log:
                self.log(EPOCH, self.history.loss_by_epoch[-1], len(self.history.loss_by_epoch))

    @property
    def is_last(self) -> bool:
        """Return whether the step to come is the last one."""
        return self.history.step == self.steps - 1

    @property
    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that the optimizer changes, in its order."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    @property
    def validates(self) -> bool:
        """Return whether the model is to be scored now: at the recipe's interval and at the end."""
        every, step = self.recipe.validate_every, self.history.step
        return every is not None and (step % every == 0 or step == self.steps)

    def scored(self, score: Callable[[nn.Module], T]) -> T:
        """Score the model on the first rank, after turning the losses so far into numbers."""
        self.collect()
        self.check_weights()
        result = ranks.by_first(score)(self.model)
        self.model.train()
        return result

    def choose(self, score: float) -> None:
        """Keep the model if it is the best so far."""
        self.history.dev_curve.append((self.history.step, score))
        if self.log:
            self.log("validation", score, self.history.step)
        if self.history.best[0] == self.history.step:
            weights = self.model.state_dict().items()
            self.best = {name: tensor.detach().cpu().clone() for name, tensor in weights}

    @property
    def epoch_to_score(self) -> int | None:
        """Return the epoch that has just ended, if the recipe scores the model after it."""
        epoch, steps = divmod(self.history.step, self.steps_per_epoch)
        return epoch if steps == 0 and epoch in self.recipe.score_at else None

    def keep(self, evaluation: Evaluation) -> None:
        """Keep the metrics after this epoch, with the epoch in their names."""
        for name, value in evaluation.metrics.items():
            self.history.metrics[f"{name}@{self.epoch_to_score}"] = value

    def collect(self) -> None:
        """Move losses and norms from the device into the history as numbers."""
        asked = [*self.norms.values(), *self.values]
        read = torch.stack(asked).tolist() if asked else []  # waits once
        norms, values = zip(self.norms, read, strict=False), read[len(self.norms) :]
        self.history.health |= {name: norm for name, norm in norms if math.isfinite(norm)}
        self.norms = {}
        self.history.losses += values
        self.values = []
        if self.log:
            for step, value in enumerate(values, self.history.step - len(values) + 1):
                self.log("loss", value, step)
        losses, epochs = self.history.losses, self.history.loss_by_epoch
        wrong = next((i for i, value in enumerate(losses) if not math.isfinite(value)), None)
        if wrong is not None:
            step = self.history.step - len(losses) + wrong + 1
            raise Diverged(
                f"the loss is {losses[wrong]} in epoch {len(epochs) + 1}, step {step}",
                {"step": step, "losses_before": losses[:wrong][-5:], "loss_by_epoch": epochs},
            )

    def check_weights(self) -> None:
        """Raise unless all weights are finite after the last step, which no later loss shows."""
        finite = [parameter.isfinite().all() for parameter in self.model.parameters()]
        if finite and not torch.stack(finite).all():
            raise Diverged(
                f"a weight is not finite after step {self.history.step}",
                {"step": self.history.step, "loss_by_epoch": self.history.loss_by_epoch},
            )

    def save_now_and_then(self, interruption: Interruption) -> None:
        """Write a checkpoint if it is time or the user wants to stop, and then stop."""
        late = time.monotonic() - self.saved > SECONDS_BETWEEN_CHECKPOINTS
        interruption.signal, due = ranks.maximum_over_ranks(interruption.signal, late)
        if self.checkpoint and (due or interruption.signal):
            self.collect()
            self.save(self.checkpoint)
            self.saved = time.monotonic()
        interruption.stop_if_asked()

    def stop_if_asked(self, interruption: Interruption) -> None:
        """Stop where all steps so far are in the checkpoint, and any rank was asked to."""
        interruption.signal, _ = ranks.maximum_over_ranks(interruption.signal, False)
        interruption.stop_if_asked()

    @ranks.by_first
    def save(self, path: Path) -> None:
        """Write the checkpoint; a disk that does not take it costs no training."""
        moments = moments_of(self.optimizer)
        tensors = self.tensors | checkpoints.joined(best=self.best, optimizer=moments)
        seconds = self.history.seconds + time.monotonic() - self.started
        state = {**vars(self.history), "seconds": seconds}
        try:
            checkpoints.write_checkpoint(path, tensors, state)
        except OSError as error:
            tell(f"{error}: the training has no newer checkpoint, make room")

    def resume(self, checkpoint: Path) -> None:
        """Go on from the checkpoint, if there is one and it is of this training."""
        if stored := self.find(checkpoint):
            self.restore(*stored)
        device = next(self.model.parameters()).device
        if not self.history.go_on(circumstances(device, self.compiled)):
            tell(
                f"goes on from step {self.history.step} with another commit, versions, device or "
                "threads than before, --compile or --no-deterministic: the numbers of an "
                "uninterrupted training are not promised"
            )

    @ranks.by_first
    def find(self, checkpoint: Path) -> tuple[checkpoints.Tensors, dict[str, Any]] | None:
        """Return the checkpoint, unless it is of another model or loss, or of another release."""
        stored = checkpoints.read_checkpoint(checkpoint)
        if stored is None:
            return None
        (tensors, state), own = stored, self.tensors
        theirs = {n: t for n, t in tensors.items() if n.startswith(("model.", "loss."))}
        theirs |= {n: t for n, t in own.items() if n in theirs and not t.numel()}  # as a queue
        same = checkpoints.forms(theirs) == checkpoints.forms(own)
        if same and state.keys() == {entry.name for entry in fields(History)}:
            return stored
        checkpoints.tell_unusable(checkpoint)
        return None

    @property
    def tensors(self) -> checkpoints.Tensors:
        return checkpoints.joined(model=self.model.state_dict(), loss=self.loss.state_dict())

    def restore(self, tensors: checkpoints.Tensors, state: dict[str, Any]) -> None:
        pairs = {key: [tuple(entry) for entry in state[key]] for key in ("dev_curve", "starts")}
        self.history = History(**{**state, **pairs})
        parts = checkpoints.parted(tensors)
        self.model.load_state_dict(parts["model"])
        self.loss.load_state_dict(parts["loss"])
        self.best = parts["best"]
        load_moments(self.optimizer, parts["optimizer"])


def generators_kept(device: torch.device) -> AbstractContextManager[None]:
    """Put the generators back afterwards, wherever they stand then."""
    return blocks.drawing_from(blocks.generator_states(device), device)


def seed_generators(device: torch.device, *key: int) -> None:
    """Seed the global generators by a key such as (seed, epoch, step)."""
    seed = generator(torch.device("cpu"), *key).initial_seed()
    seed_torch(device, seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
