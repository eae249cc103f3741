"""What every domain is: data, a model, batches that become contrasts, and a score."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from contrastbench.domains.recipes import Recipe
from contrastbench.losses.contrast import Contrast

if TYPE_CHECKING:
    from contrastbench.domains.classifiers import Labelled


@dataclass(frozen=True)
class Evaluation:
    """What a domain measured on a model."""

    metrics: dict[str, float]  # accuracies and correlations in percent
    main: str  # the metric that tables show
    details: dict[str, Any] = field(default_factory=dict)  # "validation": what may choose hyperparameters, percent


class Domain(Protocol):
    """One dataset of one kind of data, ready to train and score models on.

    `contrasts` decides who meets whom and knows no loss; a loss gets a `Contrast` and knows no domain. A class is made
    as `kind(dataset, recipe, seed, data_root, device)`. One that a package announces in the entry-point group
    `contrastbench.domains` also has the class attributes `summary`, `recipe` (its subclass of `Recipe`), `default` (the
    dataset that needs no file) and `tiny` (recipe values of a smoke test).
    """

    threads: int  # CPU threads that suit the domain's model
    data_hash: str

    def model(self, recipe: Recipe) -> nn.Module:
        """A freshly initialised model; the same for the same seed."""
        ...

    def batches(self, recipe: Recipe, epoch: int) -> Iterable[Any]:
        """The training batches of an epoch; the same for the same seed and epoch."""
        ...

    def steps(self, recipe: Recipe) -> int:
        """Number of batches in an epoch."""
        ...

    def contrasts(self, model: nn.Module, batch: Any) -> Sequence[Contrast]:
        """Who meets whom in a batch."""
        ...

    def evaluate(self, model: nn.Module) -> Evaluation:
        """The score of the model's encoder by the domain's protocol."""
        ...

    def export(self, model: nn.Module, folder: Path) -> None:
        """Write the model for other libraries; others need not have it, nor `check_export` before the training."""
        ...

    def validate(self, model: nn.Module) -> float:
        """What chooses the best model where the recipe has `validate_every`; others need not have it."""
        ...

    def classes(self, batch: Any) -> Tensor:
        """(N,) class of each sample of a batch, 0, 1, ...; domains without classes need not have it."""
        ...

    def embeddings(self, model: nn.Module) -> "Labelled":
        """What the reported score is measured on, with classes; domains without classes need not have it."""
        ...


def generator(device: torch.device, *key: int) -> torch.Generator:
    """Random numbers that depend on the key alone, such as (seed, epoch, step): interruptions never change them."""
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))
