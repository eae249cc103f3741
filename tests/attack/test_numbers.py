"""A number moves with its protocol's version or not at all."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import frozen
from contrastbench.domains.registry import DOMAINS
from contrastbench.losses.registry import LOSSES
from loss_numbers import FILE, WRITE, measured

KNOWN = frozen.read(FILE)["domains"]
ROUNDING = 1e-3  # AVX-512 against plain instructions: 4e-4; a change of meaning moves more


def moved(known: dict[str, list[float]], now: dict[str, list[float]]) -> Iterator[str]:
    """Losses whose values differ by more than rounding."""
    for name in known.keys() & now.keys():
        same = len(known[name]) == len(now[name]) and all(
            math.isclose(a, b, rel_tol=ROUNDING, abs_tol=1e-5)
            for a, b in zip(known[name], now[name], strict=False)
        )
        if not same:
            yield f"{name}: {known[name]} is now {now[name]}"


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    """Measure all domains in one process, as importing the libraries takes most of the time."""
    return measured()


def test_every_loss_has_its_numbers_in_every_domain() -> None:
    known = [f"{loss} in {domain}" for domain in KNOWN for loss in KNOWN[domain]["losses"]]
    names = [f"{loss} in {domain}" for domain in DOMAINS for loss in LOSSES]
    frozen.check_names(FILE.name, known, names, WRITE)


@pytest.mark.parametrize("domain", [domain for domain in DOMAINS if domain in KNOWN])
def test_no_number_moves_under_one_protocol(
    domain: str, now: dict[str, Any], found: Callable[[str], None]
) -> None:
    known, new = KNOWN[domain], now[domain]
    assert new["protocol"] == known["protocol"], f"the numbers are of another protocol: {WRITE}"
    assert list(moved(known["losses"], new["losses"])) == [], (
        f"numbers moved and {new['protocol']} did not: give the recipe's protocol a new version, "
        f"then {WRITE}"
    )
    found(f"numbers: {len(known['losses'])} losses in {domain}, value and gradient: none has moved")


def test_a_moved_number_is_seen() -> None:
    assert list(moved({"a": [1.0, 2.0]}, {"a": [1.0, 2.003]}))
    assert list(moved({"a": [1.0, 2.0]}, {"a": [1.0]}))
    assert not list(moved({"a": [1.0, 2.0]}, {"a": [1.0001, 2.0]}))
