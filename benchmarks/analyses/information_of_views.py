"""Estimate the information between a trained encoder's views: Figure 1 of RényiCL.

Lee and Shin, NeurIPS 2022, appendix C.3: the information between the views is estimated at every
step of a domain's own training by Algorithm 2, `estimates.by_anchor`, with the critic f = s / tau,
and reported as the mean over the last epoch beside the accuracy. The skew cancels in Algorithm 2,
so it asks for the temperature of a loss alone. It is an estimate of information in so far as f is
the critic that the divergence wants; for other losses it is what the formula gives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.estimates import by_anchor
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.analyses.scores import ANCHORS_AT_ONCE, negatives
from contrastbench.benchmarks.analyses.style import COLORS, MARKERS
from contrastbench.benchmarks.analyses.trainer import Trainer, trainer_of, training_loss
from contrastbench.benchmarks.running.training import Diverged
from contrastbench.errors import UserError, tell
from contrastbench.losses.base import Loss, Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.spec import LossSpec


class InformationCourse(NamedTuple):
    """The information and the scores of one training."""

    label: str
    information: list[float]  # nats, of each epoch
    metric: str
    score: float


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse information-of-views` asks for."""
    return analyse(trainer_of(work), work.losses, work.folder)


def analyse(trainer: Trainer, methods: Sequence[LossSpec], folder: Path) -> Iterator[Path]:
    """Train with every loss, and write the information of each epoch and the score at the end."""
    losses = [training_loss(method) for method in methods]
    scales = [fixed_temperature(method) for method in methods]
    found = []
    for method, loss, scale in zip(methods, losses, scales, strict=True):
        try:
            found.append(trained_information(trainer, method.label, loss, scale))
        except Diverged as error:
            tell(f"{method.label}: {error}; it is left out")
    if not found:
        raise UserError("every training diverged: give other losses or a smaller --recipe lr")
    rows = [
        (label, epoch, nats, score if epoch == len(information) else None)
        for label, information, _, score in found
        for epoch, nats in enumerate(information, 1)
    ]
    columns = ("loss", "epoch", "information", found[0].metric)
    title = f"Information between views, {trainer.title}"
    yield from output.write_results(
        folder, "information-of-views", columns, rows, plot(found, title)
    )


def fixed_temperature(method: LossSpec) -> float:
    """Return the temperature that divides the cosines.

    Raises:
        UserError: the loss has no temperature, or several.
    """
    values = {
        float(value)
        for name, value in method.complete.params.items()
        if name.rpartition(".")[2] == "temperature"
    }
    if len(values) != 1:
        raise UserError(
            f"{method.label} has {'several temperatures' if values else 'no temperature'}: cosines "
            "over one temperature are the critic"
        )
    return values.pop()


def trained_information(
    trainer: Trainer, label: str, loss: Loss, scale: float
) -> InformationCourse:
    """Train, and score the end."""
    steps: list[Tensor] = []

    def look(contrasts: Sequence[Contrast], batch: Any) -> Sequence[Contrast]:
        steps.append(torch.stack([information(c, scale) for c in contrasts]).mean())
        return contrasts

    evaluation = trainer.domain.evaluate(trainer.train(loss, look))
    by_epoch = torch.stack(steps).view(trainer.recipe.epochs, -1).mean(dim=1)
    return InformationCourse(
        label, by_epoch.tolist(), evaluation.main, evaluation.metrics[evaluation.main]
    )


@torch.no_grad()
def information(contrast: Contrast, scale: float) -> Tensor:
    """Algorithm 2 over the anchors of a contrast, a scalar in nats; a positive is no negative."""
    starts = range(0, len(contrast.anchor), ANCHORS_AT_ONCE)
    blocks = (negatives(contrast, slice(start, start + ANCHORS_AT_ONCE)) for start in starts)
    return torch.cat([by_anchor(critic(scores, scale)) for scores in blocks]).mean()


def critic(scores: Scores, scale: float) -> Scores:
    """Cosines over the temperature."""
    return replace(scores, pos=scores.pos / scale, neg=scores.neg / scale)


def plot(found: Sequence[InformationCourse], title: str) -> Figure:
    """The information against the epoch, and the score against the information at the end."""
    drawing, (left, right) = figure(title, 2)
    for k, (label, information, metric, score) in enumerate(found):
        color, marker = COLORS[k % len(COLORS)], MARKERS[k % len(MARKERS)]
        epochs = range(1, len(information) + 1)
        left.plot(epochs, information, color=color, lw=1.2, label=label)
        right.plot(information[-1], score, color=color, marker=marker, linestyle="")
        right.set_ylabel(metric, parse_math=False)
    left.set(xlabel="epoch", ylabel="information between views, nats")
    right.set_xlabel("information in the last epoch, nats")
    shared_legend(drawing, left)
    return drawing
