"""A training that is resumed at any of its 60 steps goes on to the bit.

Every checkpoint of a whole training is kept. From each one the next step must lead to the next
one's state, weights, moments, losses and scores, which is the whole chain; from each tenth the
training goes on to its end besides. So in each domain, with a learnable loss, with one that draws,
and in two processes that share their batches.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from resumed import RECIPES, everywhere

from counts import times
from processes import in_processes

STEPS, ENDS = times(60), 10
LEARNED = Path(__file__).parents[1] / "losses" / "learned.py"
DRAWS = LEARNED.with_name("drawing.py")
CASES = [
    *((name, "adnce") for name in RECIPES),
    ("tabular", f"{LEARNED}:Temperature"),
    ("sentence", f"{DRAWS}:Noise"),
]


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_resumed_at_every_step(
    name: str, loss: str, ram: Path, found: Callable[[str], None]
) -> None:
    assert everywhere(name, loss, ram, STEPS, ENDS) == []
    found(f"training: {name} with {loss.rpartition(':')[2]} resumed at {STEPS} steps: bit-equal")


def test_two_processes_are_resumed_at_every_step(
    ram: Path, tmp_path: Path, found: Callable[[str], None]
) -> None:
    wrong = in_processes(2, everywhere, tmp_path / "two", "tabular", "adnce", ram, STEPS, ENDS)
    assert wrong == [[], []]
    found(f"training: tabular in two processes resumed at {STEPS} steps: bit-equal")
