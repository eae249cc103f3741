"""The embedded table `hidden-clusters`: training finds what its columns share."""

from functools import cache

import torch

from contrastbench.benchmarks.running.training import train
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.domain import TabularDomain
from contrastbench.losses import get_loss

MARGIN = 10  # points that training gains over the untrained encoder, at least


@cache
def domain(seed: int, encoder: str = "mlp") -> TabularDomain:
    recipe = TabularRecipe(encoder=encoder, epochs=6)
    return TabularDomain("hidden-clusters", recipe, seed, None, torch.device("cpu"))


@cache
def untrained(seed: int, encoder: str = "mlp") -> float:
    """Return the accuracy of an encoder without a training."""
    opened = domain(seed, encoder)
    return opened.evaluate(opened.model()).metrics["accuracy"]


def test_its_numbers_are_the_same_on_every_machine() -> None:
    assert load_rows("hidden-clusters")[1].startswith("680b569228efc985")


def test_an_untrained_encoder_is_better_than_the_columns() -> None:
    assert untrained(0) > untrained(0, "raw") + 5


def test_a_trained_encoder_is_better_than_an_untrained_one() -> None:
    opened = domain(0)
    model, _ = train(opened, get_loss("adnce"))
    assert opened.evaluate(model).metrics["accuracy"] > untrained(0) + MARGIN
