"""An opened domain in which losses are trained as `bench run` trains them, while somebody looks on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from joblib import cpu_count
from torch import nn

from contrastbench.benchmarks.running.runner import Request, open_domain
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.base import Domain
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.errors import UserError

Look = Callable[
    [Sequence[Contrast], Any], Sequence[Contrast]
]  # contrasts and batch of a step -> contrasts


@dataclass(frozen=True)
class Laboratory:
    """Where losses are trained."""

    domain: Domain
    recipe: Recipe
    seed: int
    title: str

    def train(self, loss: Loss | None, look: Look | None = None) -> nn.Module:
        """The trained model, or the untrained one without a loss.

        Args:
            loss: what trains it.
            look: sees every step's contrasts on their way to the loss, and may change them.

        Raises:
            Diverged: the loss is no longer a number.
        """
        domain = Observed(self.domain, look) if look else self.domain
        return train(cast(Domain, domain), self.recipe, loss)[0]

    def with_classes(self, method: str) -> Any:
        """A method of the domain that only domains with classes have.

        Raises:
            UserError: this one has none.
        """
        if not hasattr(self.domain, method):
            raise UserError(
                "this analysis needs classes, which this domain has not: try graph, image or tabular"
            )
        return getattr(self.domain, method)


class Observed:
    """A domain whose contrasts are looked at on their way to the loss."""

    def __init__(self, domain: Domain, look: Look) -> None:
        self.domain, self.look = domain, look

    def __getattr__(self, name: str) -> Any:
        return getattr(self.domain, name)

    def contrasts(self, model: nn.Module, batch: Any) -> Sequence[Contrast]:
        """The domain's, as the looker leaves them."""
        return self.look(self.domain.contrasts(model, batch), batch)


def open_laboratory(
    domain: str,
    dataset: str,
    recipe: dict[str, Any],
    seed: int,
    data_root: Path | None,
    device: str,
    threads: int | None,
) -> Laboratory:
    """The dataset in its domain, ready to train on.

    Raises:
        UserError: there is nothing to train on, or nothing to train.
    """
    full = make_recipe(domain, recipe)
    if not full.trainable or full.epochs == 0:
        raise UserError(
            "this recipe trains nothing: give it an encoder with weights and epochs of at least 1"
        )
    request = Request(domain, dataset, "none", {}, recipe, data_root=data_root, device=device)
    opened = open_domain(request, full, seed, torch.device(device))
    if opened.steps(full) == 0:
        raise UserError(
            f"{dataset} has no full batch of {full.batch_size}: give a smaller --recipe batch_size"
        )
    torch.set_num_threads(threads or min(opened.threads, cpu_count()))
    return Laboratory(opened, full, seed, f"{domain} {dataset}, seed {seed}")
