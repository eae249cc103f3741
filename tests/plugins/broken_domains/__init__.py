"""Faces of domains that are broken in one way each, announced by the names of attributes."""

from dataclasses import replace

from contrastbench_audio import DECLARATION, AudioRecipe

from contrastbench.domains.declaration import Declaration
from contrastbench.losses.pairing import OTHER_VIEW, Pairing


def face(adapter: str) -> Declaration:
    """The audio domain's, with an adapter that is broken."""
    return replace(DECLARATION, adapter=f"broken_domains.domain:{adapter}")


seedless = face("Seedless")
global_draws = face("GlobalDraws")
one_step_of_global_draws = replace(
    global_draws, tiny={**DECLARATION.tiny, "batch_size": DECLARATION.tiny["limit"]}
)
global_dropout = face("GlobalDropout")
epochs_in_order = face("EpochsInOrder")
wrong_steps = face("WrongSteps")
long_rows = face("LongRows")
stray_draws = face("StrayDraws")
hidden_state = face("HiddenState")
hash_of_a_draw = face("HashOfADraw")
hash_of_use = face("HashOfUse")
trains_on = face("TrainsOn")
scores_by_chance = face("ScoresByChance")
downloaded = replace(
    DECLARATION,
    datasets={"tones": replace(DECLARATION.datasets["tones"], url="https://example.org/tones.zip")},
)


class WrongFacts(AudioRecipe):
    """Says that the positive is not in the denominator, where it is."""

    @property
    def pairing_facts(self) -> Pairing:
        return OTHER_VIEW


wrong_facts = replace(DECLARATION, recipe=WrongFacts)
folds_without_inner = face("FoldsWithoutInner")
