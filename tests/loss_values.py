"""Every loss on fixed embeddings: the numbers of losses/values.json.

`python tests/loss_values.py` adds a new loss to the file and leaves every other line as it is.
After a change of a formula that is meant, `python tests/loss_values.py --anew NAME` writes that
loss's numbers anew.
"""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import frozen
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.laws.assertions import value_and_gradient
from contrastbench.losses.laws.random_contrasts import (
    LAW_PAIRINGS,
    random_views,
    with_sample_numbers,
)

FILE = Path(__file__).parent / "losses" / "values.json"


def compute(name: str, pairing: str) -> list[float]:
    """Return the loss's value and the norm of its gradient by each view."""
    views = random_views(0, 6, grad=True)
    found = value_and_gradient(
        with_sample_numbers(get_loss(name)), LAW_PAIRINGS[pairing](views), views
    )
    return [number.norm().item() if number.ndim else number.item() for number in found]


def joined(kept: dict[str, Any], anew: Collection[str] = ()) -> dict[str, Any]:
    """Return the kept numbers with those of new losses and of new pairings."""

    def loss(name: str) -> dict[str, Any]:
        old = {} if name in anew else kept.get(name, {})
        return frozen.updated(old, LAW_PAIRINGS, partial(compute, name))

    return frozen.updated(kept, LOSSES, loss, LOSSES)


if __name__ == "__main__":
    frozen.write(FILE, joined(frozen.read(FILE), frozen.asked(LOSSES)))
