"""Every loss on fixed embeddings: a number that drifts shows as a diff of values.json.

After a change that is meant, `python -c "import test_values; test_values.update()"` in this folder
rewrites the file.
"""

import json
from pathlib import Path

import pytest
import torch

from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.laws.assertions import value_and_gradient
from contrastbench.losses.laws.random_contrasts import PAIRINGS, random_views

FILE = Path(__file__).with_name("values.json")


def compute(name: str) -> dict[str, list[float]]:
    """Value and gradient norms by view, for every pairing."""
    views = random_views(0, 6, grad=True)
    loss = get_loss(name)
    found = {
        key: value_and_gradient(loss, pairing(views), views) for key, pairing in PAIRINGS.items()
    }
    return {
        key: [number.norm().item() if number.ndim else number.item() for number in f]
        for key, f in found.items()
    }


def update() -> None:
    FILE.write_text(json.dumps({name: compute(name) for name in LOSSES}, indent=1) + "\n")


@pytest.mark.parametrize("name", LOSSES)
def test_frozen_numbers(name: str) -> None:
    frozen = json.loads(FILE.read_text())
    assert list(frozen) == list(LOSSES)
    found = compute(name)
    assert found.keys() == frozen[name].keys()
    for key, numbers in found.items():
        torch.testing.assert_close(numbers, frozen[name][key], rtol=1e-9, atol=1e-9)
