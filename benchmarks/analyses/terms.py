"""Follow each term of a loss in training: Figure 8 of DASL.

Whatever is a term of one of the losses is followed in the trainings of all: so the cross-total
variation of `dar` in a training by `infonce` stands beside that in one by `infonce + 0.5*dar`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import step_panels
from contrastbench.benchmarks.analyses.trainer import Trainer, trainer_of, training_loss
from contrastbench.losses.base import Loss, summands
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.spec import LossSpec

Terms = Mapping[str, Loss]  # by what tells them apart


class Curves(NamedTuple):
    """The terms of a loss at every step of a training."""

    label: str
    weights: dict[str, float]  # of the terms that it is trained by
    values: Tensor  # (steps, terms)


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse terms` asks for."""
    return analyse(trainer_of(work), work.losses, work.folder)


def analyse(trainer: Trainer, methods: Sequence[LossSpec], folder: Path) -> Iterator[Path]:
    """Train with every loss; write and draw all terms of all of them."""
    terms = [*terms_of(trainer, methods)]
    curves = []
    for method in methods:
        loss = trainer.prepared(training_loss(method))
        weights = {repr(term): weight for weight, term in summands(loss)}
        # new ones for each training, which may move the parameters of its own
        followed = {**terms_of(trainer, methods), **{repr(t): t for _, t in summands(loss)}}
        curves.append(Curves(method.label, weights, step_terms(trainer, method, loss, followed)))
    rows = (
        (label, step, name, weights.get(name, 0.0), value)
        for label, weights, values in curves
        for step, row in enumerate(values.tolist(), 1)
        for name, value in zip(terms, row, strict=True)
    )
    columns = ("loss", "step", "term", "weight", "value")
    drawn = step_panels(trainer.title, terms, {label: values for label, _, values in curves})
    yield from output.write_results(folder, "terms", columns, rows, drawn)


def terms_of(trainer: Trainer, methods: Sequence[LossSpec]) -> dict[str, Loss]:
    """Return the terms of all losses, as they are before a training."""
    losses = [trainer.prepared(training_loss(method)) for method in methods]
    return {repr(term): term for loss in losses for _, term in summands(loss)}


def step_terms(trainer: Trainer, method: LossSpec, loss: Loss, terms: Terms) -> Tensor:
    """Return the terms of each step's batch without their weights, (steps, terms)."""

    def measured(contrasts: Sequence[Contrast]) -> Tensor:
        with torch.no_grad(), evaluated(terms.values()):
            values = [sum(term(contrast) for contrast in contrasts) for term in terms.values()]
        return torch.stack([torch.as_tensor(value) for value in values])

    return trainer.followed(loss, measured, method.label)


@contextmanager
def evaluated(terms: Iterable[Loss]) -> Iterator[None]:
    """Let terms be as in the next step, and remember nothing of what they see in the block."""
    modes = [(term, term.training) for term in terms]
    for term, _ in modes:
        term.keep_in_range()
        term.eval()
    try:
        yield
    finally:
        for term, training in modes:
            term.train(training)
