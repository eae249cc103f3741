"""A training that is resumed at any of its 60 steps goes on to the bit; special images at 20.

Every checkpoint of a whole training is kept. From each one the next step must lead to the next
one's state, weights, moments, losses and scores, which is the whole chain; from each tenth the
training goes on to its end besides, where model, history and scores are those of the whole one. So
in each domain, in what only some trainings have, with losses that learn, count and draw, and in two
processes that share their batches.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from counts import times
from processes import in_processes
from resumed import CASES, everywhere

STEPS, ENDS = times(60, least=4), times(10, least=1)


@pytest.mark.parametrize("case", CASES)
def test_resumed_at_every_step(case: str, ram: Path, found: Callable[[str], None]) -> None:
    steps = times(20, least=3) if case.startswith("image, ") else STEPS
    assert everywhere(case, ram, steps, ENDS) == []
    found(f"training: {case} resumed at {steps} steps: bit-equal")


def test_two_processes_are_resumed_at_every_step(
    ram: Path, tmp_path: Path, found: Callable[[str], None]
) -> None:
    wrong = in_processes(2, everywhere, tmp_path / "two", "tabular", ram, STEPS, ENDS)
    assert wrong == [[], []]
    found(f"training: tabular in two processes resumed at {STEPS} steps: bit-equal")
