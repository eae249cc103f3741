"""Faces of domains that are broken in one way each, announced by the names of attributes."""

from dataclasses import replace

from contrastbench_audio import DECLARATION, AudioRecipe

from contrastbench.domains.declaration import Declaration
from contrastbench.losses.pairing import OTHER_VIEW, Pairing


def __getattr__(name: str) -> Declaration:
    """Return the face with a broken adapter: `WrongSteps` for wrong_steps."""
    adapter = "".join(word.title() for word in name.split("_"))
    return replace(DECLARATION, adapter=f"broken_domains.domain:{adapter}")


one_step_of_global_draws = replace(
    __getattr__("global_draws"), tiny={**DECLARATION.tiny, "batch_size": DECLARATION.tiny["limit"]}
)
downloaded = replace(
    DECLARATION,
    datasets={"tones": replace(DECLARATION.datasets["tones"], url="https://example.org/tones.zip")},
)
one_hash = replace(
    __getattr__("one_hash"),
    datasets={**DECLARATION.datasets, "chirps": DECLARATION.datasets["tones"]},
)


class WrongFacts(AudioRecipe):
    """Says that the positive is not in the denominator, where it is."""

    @property
    def pairing_facts(self) -> Pairing:
        return OTHER_VIEW


wrong_facts = replace(DECLARATION, recipe=WrongFacts)
