"""Operations on one folder of records, each beside each: nothing is lost, short, or shown twice."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

import interleaved
from counts import dice, times
from forked import Lives, lives

OPERATIONS = list(interleaved.OPERATIONS)
CHANGING = ("pack", "undo")  # these remove files
PAIRS = [pair for pair in product(OPERATIONS, repeat=2) if set(pair) & set(CHANGING)]
KILLED = [pair for pair in PAIRS if pair[0] in CHANGING]


@pytest.fixture(scope="module")
def living() -> Iterator[Lives]:
    """Keep a process that forks the operations."""
    with lives(interleaved) as made:
        yield made


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_operations(
    living: Lives, ram: Path, found: Callable[[str], None], first: str, second: str
) -> None:
    """Each is stopped before a call of its own, while the other goes on."""
    race(living, ram, first, second, kill=False)
    found(f"store: {first} beside {second}, {times(100)} times: 0 lost, 0 wrong")


@pytest.mark.parametrize(("first", "second"), KILLED)
def test_one_of_two_operations_is_killed(
    living: Lives, ram: Path, found: Callable[[str], None], first: str, second: str
) -> None:
    race(living, ram, first, second, kill=True)
    found(f"store: {first} killed beside {second}, {times(100)} times: 0 lost, 0 wrong")


def race(living: Lives, ram: Path, first: str, second: str, kill: bool) -> None:
    seed = str(dice(f"{first} {second} {kill}").random())
    life = ("trials", first, second, times(100), seed, kill, str(ram), None)
    assert living(life) == [0]
    assert (ram / "wrong").read_text() == ""
