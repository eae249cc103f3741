"""Views of table rows, a whole batch at once: random masking and feature corruption."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from contrastbench.domains.tabular import TabularRecipe


class FeatureLayout(NamedTuple):
    """The columns of a table as a network's inputs have them: categories take several."""

    of_input: Tensor  # (inputs,) the feature that each input belongs to
    number: int  # known to the host, which would have to wait for the device to find it


def two_views(
    table: Tensor, rows: Tensor, features: FeatureLayout, recipe: TabularRecipe, rng: Generator
) -> tuple[Tensor, Tensor]:
    """Two views of rows of a table; the first is the rows themselves where it is `one_way`."""
    x = table[rows]
    first = x if recipe.pairing == "one_way" else view(x, table, features, recipe, rng)
    return first, view(x, table, features, recipe, rng)


def view(
    x: Tensor, table: Tensor, features: FeatureLayout, recipe: TabularRecipe, rng: Generator
) -> Tensor:
    """(b, inputs) one view: corrupted, masked, both or neither."""
    shape, feature_of = (len(x), features.number), features.of_input
    if "corruption" in recipe.views:
        x = corrupt(x, table, feature_of, changed_features(shape, recipe, rng), rng)
    if "masking" in recipe.views:
        x = x.masked_fill(changed_features(shape, recipe, rng)[:, feature_of], 0)
    return x


def corrupt(x: Tensor, table: Tensor, of: Tensor, chosen: Tensor, rng: Generator) -> Tensor:
    """Chosen features replaced by draws from their empirical marginals, each on its own.

    Args:
        x: (b, inputs).
        table: (n, inputs) where the draws come from.
        of: (inputs,) the feature that each input belongs to.
        chosen: (b, features) which to replace.
    """
    donors = torch.randint(len(table), chosen.shape, generator=rng, device=x.device)[:, of]
    return torch.where(chosen[:, of], table.gather(0, donors), x)


def changed_features(shape: tuple[int, int], recipe: TabularRecipe, rng: Generator) -> Tensor:
    """(b, features) which features change: each by chance, or exactly int(rate * features)."""
    noise = torch.rand(shape, generator=rng, device=rng.device)
    if recipe.choice == "each":
        return noise < recipe.rate
    chosen = noise.topk(int(recipe.rate * shape[1]), dim=1).indices
    return torch.zeros_like(noise, dtype=torch.bool).scatter_(1, chosen, True)
