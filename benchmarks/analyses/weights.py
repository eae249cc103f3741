r"""Compute a gradient's weights on negatives and positives by score: Figure 3 of ADNCE.

ADNCE (Wu et al. 2023), Figure 3, the training weight of negatives by similarity; RényiCL (Lee and
Shin, NeurIPS 2022), section 5.2, hard negatives and easy positives. Both by autograd, so for any
loss of scores:

.. math:: w^-(s_j) \propto \sum_i \frac{\partial L}{\partial s_{ij}}, \qquad
   w^+(s^+_i) \propto -\frac{\partial L}{\partial s^+_i}

with a mean size of 1, positive where a negative is pushed away and a positive pulled near. The
batch is made up: an anchor for each of `COSINE_GRID` as its positive's, and each of them has all of
these scores as its negatives'. A loss whose weights depend on what else is in the batch has those
of this one.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from contrastbench.benchmarks.analyses import output, score_losses
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.analyses.trainer import training_loss
from contrastbench.losses.base import Loss, Scores
from contrastbench.losses.spec import LossSpec

COSINE_COUNT = 100
# none is of length one
COSINE_GRID = (torch.arange(COSINE_COUNT, dtype=torch.float64) + 0.5) / COSINE_COUNT * 2 - 1


class WeightCurve(NamedTuple):
    """The weights of one loss at `COSINE_GRID`."""

    label: str
    negative: Tensor
    positive: Tensor


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse weights` asks for."""
    return analyse(work.losses, work.folder)


def analyse(methods: Sequence[LossSpec], folder: Path) -> Iterator[Path]:
    """Write and draw the weights of every loss.

    Raises:
        UserError: a loss is none of scores.
    """
    losses = [training_loss(method) for method in methods]
    for loss in losses:
        score_losses.check_score_loss(loss)
    pairs = zip(methods, losses, strict=True)
    curves = [WeightCurve(method.label, *weights(loss)) for method, loss in pairs]
    rows = (
        (curve.label, *numbers)
        for curve in curves
        for numbers in zip(*map(Tensor.tolist, (COSINE_GRID, *curve[1:])), strict=True)
    )
    columns = ("loss", "score", "weight_of_negative", "weight_of_positive")
    yield from output.write_results(folder, "weights", columns, rows, plot(curves))


def weights(loss: Loss) -> tuple[Tensor, Tensor]:
    """Return the weights of negatives and of positives at `COSINE_GRID`, each of mean size 1."""
    count = COSINE_GRID.new_full((COSINE_COUNT, 1), COSINE_COUNT)
    scores = Scores(COSINE_GRID.unsqueeze(1), COSINE_GRID.repeat(COSINE_COUNT, 1), count)
    by_pos, by_neg = score_losses.pulls(loss, scores)
    return unit_mean(by_neg.sum(dim=0)), unit_mean(-by_pos.sum(dim=1))


def unit_mean(pull: Tensor) -> Tensor:
    """Divide a pull by the mean of its absolute values; an all-zero pull stays zero."""
    size = pull.abs().mean()
    return pull / size if size > 0 else pull


def plot(curves: Sequence[WeightCurve]) -> Figure:
    """Weights of negatives, and of positives, against the cosine."""
    drawing, panels = figure("Weights by the loss's gradient, 1 on average", 2)
    names = ("negative", "positive")
    for axes, name in zip(panels, names, strict=True):
        for curve in curves:
            axes.plot(COSINE_GRID.tolist(), getattr(curve, name).tolist(), label=curve.label)
        axes.set_xlabel(f"cosine of the {name}")
        axes.set_ylabel(f"weight of the {name}")
    shared_legend(drawing, panels[0], columns=2)
    return drawing
