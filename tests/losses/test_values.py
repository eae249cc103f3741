"""Every loss on fixed embeddings: a number that drifts shows as a diff of numbers.json."""

import pytest
import torch

import frozen
from contrastbench.losses import LOSSES
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS
from loss_numbers import FILE, WRITE, compute, ranges

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
