"""How each domain trains and scores: everything besides data, loss and seed that can change a number.

Importing it imports no numerics, so that tables are rendered in an instant.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contrastbench.losses.errors import UserError, unknown

Augmentation = Literal["drop", "edges", "mask", "subgraph", "random2", "random3", "random4"]


class Recipe(BaseModel):
    """What every domain's recipe has; unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    epochs: int = Field(20, ge=0)
    batch_size: int = Field(128, ge=2)
    lr: float = Field(0.01, gt=0)
    optimizer: Literal["adam", "sgd"] = "adam"
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["constant", "cosine"] = "constant"
    limit: int | None = Field(None, ge=2, description="use only so many samples: for smoke tests")

    @property
    def protocol(self) -> str:
        """Names everything about training and scoring that the recipe's values do not; part of a record's key."""
        raise NotImplementedError


class GraphRecipe(Recipe):
    """GraphCL's unsupervised_TU protocol, which ADNCE's graph code shares.

    >>> GraphRecipe(augmentation="random4").epochs
    20
    """

    augmentation: Augmentation = "random2"
    subgraph: Literal["official", "fixed"] = Field("official", description="1-hop as released, or a random walk")
    drop_ratio: float = Field(0.1, ge=0, lt=1)
    edge_ratio: float = Field(0.1, ge=0, lt=1)
    mask_ratio: float = Field(0.1, ge=0, le=1)
    subgraph_ratio: float = Field(0.2, ge=0, le=1)
    features: Literal["labels", "degree"] = Field("labels", description="node labels or 1 where there are none; degree")
    layers: int = Field(3, ge=1)
    hidden: int = Field(32, ge=1)
    folds: int = Field(10, ge=2)

    @property
    def protocol(self) -> str:
        """GraphCL's unsupervised_TU as described in the graph domain; degree features make it another protocol."""
        return "graphcl-unsupervised-tu/1" + ("+degree" if self.features == "degree" else "")


RECIPES: dict[str, type[Recipe]] = {"graph": GraphRecipe}
TINY: dict[str, dict[str, Any]] = {"graph": {"epochs": 2, "limit": 60, "folds": 3}}


def make_recipe(domain: str, values: dict[str, Any]) -> Recipe:
    """The domain's recipe with these values in place of the defaults.

    Raises:
        UserError: unknown key, wrong type or a value out of range, in one line.

    >>> make_recipe("graph", {"epoch": 3})
    Traceback (most recent call last):
    contrastbench.losses.errors.UserError: unknown recipe key of domain graph 'epoch': did you mean 'epochs'?
    """
    recipe = RECIPES[domain]
    for key in values:
        if key not in recipe.model_fields:
            raise unknown(f"recipe key of domain {domain}", key, recipe.model_fields)
    try:
        return recipe(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"recipe {first['loc'][0]}={first['input']!r}: {first['msg'].lower()}") from None
