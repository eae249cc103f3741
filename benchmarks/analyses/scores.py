"""Follow the scores of negatives and positives in training: Figure 2 of ADNCE."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import step_panels
from contrastbench.benchmarks.analyses.trainer import Trainer, trainer_of, training_loss
from contrastbench.losses.base import Scores, block_scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.spec import LossSpec

MOMENTS = ("negatives_mean", "negatives_variance", "positives_mean")
NAMES = (
    "mean of the negatives' cosines",
    "variance of the negatives' cosines",
    "mean of the positives' cosines",
)
ANCHORS_AT_ONCE = 1024  # anchors at once


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse scores` asks for."""
    return analyse(trainer_of(work), work.losses, work.folder)


def analyse(trainer: Trainer, methods: Sequence[LossSpec], folder: Path) -> Iterator[Path]:
    """Train every loss, write the curves and draw them together."""

    def measured(contrasts: Sequence[Contrast]) -> Tensor:
        return torch.stack([moments(contrast) for contrast in contrasts]).mean(dim=0)

    losses = {method.label: training_loss(method) for method in methods}
    curves = {name: trainer.followed(loss, measured, name) for name, loss in losses.items()}
    rows = (
        (name, step, *values)
        for name, found in curves.items()
        for step, values in enumerate(found.tolist(), 1)
    )
    columns = ("loss", "step", *MOMENTS)
    yield from output.write_results(
        folder, "scores", columns, rows, step_panels(trainer.title, NAMES, curves)
    )


@torch.no_grad()
def moments(contrast: Contrast) -> Tensor:
    r"""Return the means over the anchors of their moments, (3,).

    .. math:: \frac1A \sum_i \Bigl( \bar s_i,\; \frac1{N_i} \sum_{j=1}^{N_i}
       (s_{ij} - \bar s_i)^2,\; \frac1{P_i} \sum_m s^+_{im} \Bigr), \qquad
       \bar s_i = \frac1{N_i} \sum_j s_{ij}

    ADNCE (Wu et al. 2023), appendix B.1, "Variance analysis": mean and variance of an anchor's
    negatives, averaged over the batch, and the mean of the positives. The paper draws 256 samples
    of a batch, here it is all of them. In `whole_row` the positive is among the keys; it is not
    counted as a negative here. Cosines, no unit.
    """
    starts = range(0, len(contrast.anchor), ANCHORS_AT_ONCE)
    return torch.cat(
        [row_moments(negatives(contrast, slice(i, i + ANCHORS_AT_ONCE))) for i in starts]
    ).mean(dim=0)


def row_moments(scores: Scores) -> Tensor:
    """(a, 3) mean and variance of each anchor's negatives, mean of its positives."""
    mean = scores.mean_neg(scores.neg)
    return torch.cat(
        [mean, scores.mean_neg((scores.neg - mean).square()), scores.mean_pos(scores.pos)[:, None]],
        dim=1,
    )


def negatives(contrast: Contrast, rows: slice) -> Scores:
    """The scores of some rows of anchors; keys that are positives are no negatives."""
    scores = block_scores(contrast, rows)
    if contrast.positive_key is None:
        return scores
    neg = scores.neg.scatter(1, contrast.positive_key[rows], -torch.inf)
    return replace(scores, neg=neg, count=(~neg.isneginf()).sum(dim=1, keepdim=True).to(neg.dtype))
