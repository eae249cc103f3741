"""Every loss on fixed embeddings: a number that drifts shows as a diff of numbers.json."""

import pytest
import torch

import frozen
from contrastbench.losses import LOSSES
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS
from loss_numbers import FILE, WRITE, compute, ranges, with_pairings

FROZEN = frozen.read(FILE)["pairings"]


def test_every_loss_has_its_values() -> None:
    frozen.check_names(FILE.name, FROZEN, LOSSES, WRITE)
    for name, kept in FROZEN.items():
        frozen.check_names(f"{FILE.name} ({name})", kept, LAW_PAIRINGS, WRITE)


@pytest.mark.parametrize("name", [name for name in LOSSES if name in FROZEN])
def test_frozen_numbers(name: str) -> None:
    assert ranges(name) == frozen.read(FILE)["ranges"][name], "a search would draw other settings"
    for pairing in LAW_PAIRINGS.keys() & FROZEN[name].keys():
        kept = FROZEN[name][pairing]
        torch.testing.assert_close(compute(name, pairing), kept, rtol=1e-9, atol=1e-9)


def test_new_losses_and_pairings_join_and_kept_numbers_stay() -> None:
    drifted = [0.5, 0.5, 0.5, 0.0]
    kept = {name: FROZEN[name] for name in FROZEN if name != "jsd"}
    kept["dv"] = {"both_views": drifted, "gone": drifted}
    found = with_pairings(kept)
    assert {*LOSSES} == {name for name in found if found[name].keys() == LAW_PAIRINGS.keys()}
    assert found["dv"]["both_views"] == drifted
    assert {name: found[name] for name in kept if name != "dv"} == {
        name: FROZEN[name] for name in kept if name != "dv"
    }
    assert with_pairings(kept, ["dv"])["dv"]["both_views"] == compute("dv", "both_views")
