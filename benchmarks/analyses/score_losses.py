"""Evaluate losses on scores alone: their value and derivatives."""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss, ScoreLoss, Scores, summands
from contrastbench.losses.exponential import SummedLoss


def check_score_loss(loss: Loss) -> None:
    """Raise unless the loss, or each term of a sum, is a formula of one matrix of scores.

    `clip` compares the other direction too, and `sogclr` remembers other batches: their numbers
    here would be those of other losses.
    """
    for _, part in summands(loss):
        if not is_formula(part):
            raise UserError(f"{part.name} does not depend on scores alone: choose another loss")


def is_formula(loss: Loss) -> bool:
    """Return whether nothing but `terms` and `combine` makes the loss."""
    if not isinstance(loss, ScoreLoss):
        return False
    kind = type(loss)
    forwards = (ScoreLoss.forward, SummedLoss.forward)
    return kind.forward in forwards and kind.conclude is ScoreLoss.conclude


def hole(loss: Loss) -> float:
    """Return the score of a key that is no negative; finite where a term of the loss needs it."""
    return max(cast(ScoreLoss, term).hole for _, term in summands(loss))


def loss_of_scores(loss: Loss, scores: Scores) -> Tensor:
    """The loss of all anchors' scores."""
    terms = [
        weight * cast(ScoreLoss, part).combine(cast(ScoreLoss, part).terms(scores))
        for weight, part in summands(loss)
    ]
    return torch.stack(terms).sum()


def pulls(loss: Loss, scores: Scores) -> tuple[Tensor, Tensor]:
    """The loss's derivatives by the scores of positives, (a, P), and of negatives, (a, K)."""
    with torch.enable_grad():
        pos, neg = scores.pos.detach().requires_grad_(), scores.neg.detach().requires_grad_()
        found = loss_of_scores(loss, replace(scores, pos=pos, neg=neg))
        by_pos, by_neg = torch.autograd.grad(found, (pos, neg), materialize_grads=True)
    return by_pos, by_neg.masked_fill(scores.hole, 0)
