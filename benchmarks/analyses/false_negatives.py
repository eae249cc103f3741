r"""Analyse false negatives at each temperature: Figure 1 of ADNCE.

A negative is false where its sample is of the anchor's own class. ADNCE (Wu et al. 2023), Figure 1
and appendix B.1, "Noisy experiments": of the false negatives a share r is kept (r = 0: all are
removed by their labels; r = 1: uniform sampling, as without labels), SimCLR is trained with each
temperature tau, and its accuracy is drawn relative to others. The paper does not say relative to
which; here it is the best of the same r. Nor does it say how those that are kept are chosen; here
each pair of an anchor and a false negative is kept with probability r, anew in each step.

Beside it stands how much of the loss lies on false negatives, which explains the figure: by section
3.3 InfoNCE trains on the negatives' worst-case distribution Q* ~ exp(s / tau), so the smaller tau,
the larger the share of what is similar to the anchor, false negatives among it. For any loss of
scores Q* is taken as what the loss's gradient says:

.. math:: q_{ij} = \frac{|\partial L / \partial s_{ij}|}{\sum_k |\partial L / \partial s_{ik}|},
   \qquad \text{share} = \frac1A \sum_i \sum_{j\ \mathrm{false}} q_{ij}

which for InfoNCE is the softmax of s / tau over the negatives. It is averaged over the steps of the
last epoch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from contrastbench.benchmarks.analyses import output, score_losses
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.analyses.trainer import Trainer, trainer_of, training_loss
from contrastbench.benchmarks.running.training import Diverged
from contrastbench.domains.progress import Progress
from contrastbench.domains.random import generator
from contrastbench.errors import UserError
from contrastbench.losses.base import Loss, Scores, block_scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.spec import LossSpec


@dataclass(frozen=True)
class ClassedContrast(Contrast):
    """A contrast with the classes of its samples, so that false negatives are known."""

    same_class: Tensor | None = None  # (A, K)


class TemperaturePoint(NamedTuple):
    """A training with one share of false negatives and one temperature; None where it diverged."""

    kept: float
    temperature: float
    score: float | None = None
    weighted: float | None = None
    uniform: float | None = None


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse false-negatives` asks for.

    Raises:
        UserError: the loss has a temperature of its own.
    """
    (loss,) = work.losses
    if "temperature" in loss.params:
        raise UserError("leave the temperature out of the loss: give --with temperatures=0.2,0.5")
    kept, temperatures = work.values["kept"], work.values["temperatures"]
    return analyse(trainer_of(work), loss, kept, temperatures, work.folder)


def analyse(
    trainer: Trainer,
    method: LossSpec,
    kept: Sequence[float],
    temperatures: Sequence[float],
    folder: Path,
) -> Iterator[Path]:
    """Train with each share of false negatives and each temperature; write and draw.

    Raises:
        UserError: no temperature, no classes or no scores, or every training diverged.
    """
    specs = {
        value: LossSpec(method.name, {**method.params, "temperature": value})
        for value in temperatures
    }
    for spec in specs.values():
        check_false_negatives(trainer, training_loss(spec))
    found = []
    with Progress(len(kept) * len(specs), "trainings") as progress:
        for share, temperature in product(kept, specs):
            loss = training_loss(specs[temperature])  # a new one, as a training may move parameters
            found.append(train_point(trainer, loss, share, temperature))
            progress.step(f"r {share:g}, temperature {temperature:g}")
    points = [point for _, point in found]
    metric = next((name for name, _ in found if name), None)
    if metric is None:
        raise UserError(
            "every training diverged: give larger --with temperatures or a smaller --recipe lr"
        )
    columns = (
        "kept",
        "temperature",
        metric,
        f"relative_{metric}",
        "weighted_share",
        "uniform_share",
    )
    rows = [
        (p.kept, p.temperature, p.score, relative_score(points, p), p.weighted, p.uniform)
        for p in points
    ]
    title = f"{method.label}: {trainer.title}"
    yield from output.write_results(
        folder, "false-negatives", columns, rows, plot(points, metric, title)
    )


def check_false_negatives(trainer: Trainer, loss: Loss) -> None:
    """Raise unless there can be false negatives, and the loss can say what they weigh."""
    _ = trainer.with_classes
    if trainer.recipe.pairs_by_class:
        raise UserError("a pairing by class has no false negatives: leave --recipe pairing out")
    score_losses.check_score_loss(loss)


def train_point(
    trainer: Trainer, loss: Loss, kept: float, temperature: float
) -> tuple[str, TemperaturePoint]:
    """Train once, and return the main metric's name and the measurements."""
    thinned = Thinned(loss, kept, trainer.seed)
    classes = trainer.with_classes.classes

    def look(contrasts: Sequence[Contrast], batch: Any) -> Sequence[Contrast]:
        return [contrast_by_class(contrast, classes(batch)) for contrast in contrasts]

    try:
        evaluation = trainer.domain.evaluate(trainer.train(thinned, look))
    except Diverged:
        return "", TemperaturePoint(kept, temperature)
    last = thinned.shares[-(len(thinned.shares) // trainer.recipe.epochs) :]
    weighted, uniform = torch.stack(last).mean(dim=0).tolist()
    return evaluation.main, TemperaturePoint(
        kept, temperature, evaluation.metrics[evaluation.main], weighted, uniform
    )


def contrast_by_class(contrast: Contrast, classes: Tensor) -> ClassedContrast:
    """Return the contrast with the classes of its samples, which its ids number."""
    if bool((classes < 0).any()):
        raise UserError(
            "some training samples have no class: false negatives need a labelled dataset"
        )
    same = classes[contrast.anchor_id].unsqueeze(1) == classes[contrast.key_id]
    return ClassedContrast(**vars(contrast), same_class=same)


class Thinned(Loss):
    """A loss that keeps a share of the false negatives and records the weight on them."""

    def __init__(self, loss: Loss, kept: float, seed: int) -> None:
        super().__init__()
        self.loss, self.kept, self.seed = loss, kept, seed
        self.shares: list[Tensor] = []  # of each contrast: weighted, uniform

    def forward(self, contrast: Contrast) -> Tensor:
        same = cast(ClassedContrast, contrast).same_class
        assert same is not None, "look made it"
        hole = score_losses.hole(self.loss)
        scores = block_scores(contrast, slice(None), hole)
        false = same & ~scores.hole
        if self.kept < 1:
            rng = generator(false.device, self.seed, len(self.shares))
            drawn = torch.rand(false.shape, generator=rng, device=false.device) < self.kept
            scores, false = without_negatives(scores, false & ~drawn, hole), false & drawn
        uniform = (false.sum(dim=1, keepdim=True) / scores.count).mean()
        self.shares.append(torch.stack([weighted_share(self.loss, scores, false), uniform]))
        return score_losses.loss_of_scores(self.loss, scores)


def without_negatives(scores: Scores, dropped: Tensor, hole: float) -> Scores:
    """The scores without some of the negatives.

    Raises:
        UserError: an anchor has none left.
    """
    neg = scores.neg.masked_fill(dropped, hole)
    count = (~scores.hole & ~dropped).sum(dim=1, keepdim=True)
    if not bool((count > 0).all()):
        raise UserError(
            "an anchor has no true negatives in its batch: give a larger --recipe batch_size"
        )
    return replace(scores, neg=neg, count=count.to(neg.dtype))


def weighted_share(loss: Loss, scores: Scores, false: Tensor) -> Tensor:
    """Share of the loss's gradient that lies on false negatives, a scalar: mean over anchors."""
    pull = score_losses.pulls(loss, scores)[1].abs()
    total = pull.sum(dim=1)
    return (pull.masked_fill(~false, 0).sum(dim=1)[total > 0] / total[total > 0]).mean()


def relative_score(points: Sequence[TemperaturePoint], point: TemperaturePoint) -> float | None:
    """The score as a share of the best with the same share of false negatives."""
    best = (
        max(p.score for p in points if p.kept == point.kept and p.score is not None)
        if point.score
        else None
    )
    return point.score / best if point.score and best else None


def plot(points: Sequence[TemperaturePoint], metric: str, title: str) -> Figure:
    """Relative scores, and shares weighted by the loss, against the temperature.

    A line for each share that is kept.
    """
    drawing, (left, right) = figure(title, 2)
    for kept in dict.fromkeys(point.kept for point in points):
        line = [point for point in points if point.kept == kept and point.score is not None]
        x = [point.temperature for point in line]
        numbers = [(relative_score(points, one), one.weighted, one.uniform) for one in line]
        relative, weighted, uniform = np.array(numbers, dtype=float).reshape(-1, 3).T
        left.plot(x, relative, marker="o", label=f"r = {kept:g}")
        (drawn,) = right.plot(x, weighted, marker="o")
        right.plot(x, uniform, color=drawn.get_color(), linestyle=":")
    left.set_ylabel(f"{metric} / best of the same r", parse_math=False)
    right.set_ylabel("share of the negatives that is false")
    for axes in (left, right):
        axes.set_xlabel("temperature τ")
    right.set_title("as the loss weights them; dotted: by number", fontsize=9)
    left.set_title("trained with a share r of the false negatives kept", fontsize=9)
    shared_legend(drawing, left)
    return drawing
