"""Declare the domain: its recipe and its datasets.

Lists, plans and tables import this module, so it must not import torch. The adapter is in
`domain.py`.
"""

from pydantic import Field

from contrastbench.domains.declaration import Dataset, Declaration, by_name
from contrastbench.domains.recipe import Recipe
from contrastbench.losses.pairing import BOTH_VIEWS, Pairing


class AudioRecipe(Recipe):
    """The settings that can change a number, besides data, loss and seed."""

    epochs: int = Field(10, ge=0)
    batch_size: int = Field(32, ge=2)
    lr: float = Field(3e-3, gt=0)
    noise: float = Field(0.3, ge=0, description="standard deviation of the noise in a view")
    width: int = Field(16, ge=1, description="channels of the first layer")

    @property
    def protocol(self) -> str:
        """The version of the code: raise it when the code changes a number."""
        return "tones/1"

    @property
    def pairing_facts(self) -> Pairing:
        """The denominator, by which a comparison recognises losses that are the same here."""
        return BOTH_VIEWS


DATASETS = by_name(
    Dataset("tones", "embedded: 400 tones of 4 timbres", citation="generated", licence="MIT")
)

DECLARATION = Declaration(
    summary="a 1-D CNN on synthetic tones, nearest neighbours",
    adapter="contrastbench_audio.domain:AudioDomain",
    recipe=AudioRecipe,
    datasets=DATASETS,
    default="tones",
    tiny={"epochs": 2, "limit": 120, "width": 4},
)
