"""A number moves with its protocol's version or not at all."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tiny_runs

from contrastbench.domains.registry import DOMAINS
from contrastbench.losses.registry import LOSSES

KNOWN = json.loads(tiny_runs.KNOWN.read_text())
ANEW = "write them anew: python tests/tiny_runs.py"
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
def measured() -> dict[str, Any]:
    """Of all domains, by one process: most of its time is the libraries'."""
    return tiny_runs.measured()


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_number_moves_under_one_protocol(
    domain: str, measured: dict[str, Any], found: Callable[[str], None]
) -> None:
    known, now = KNOWN[domain], measured[domain]
    assert now["protocol"] == known["protocol"], f"numbers of another protocol: {ANEW}"
    assert known["losses"].keys() == set(LOSSES), f"there are other losses: {ANEW}"
    assert list(moved(known["losses"], now["losses"])) == [], (
        f"numbers moved and {now['protocol']} did not: give the recipe's protocol a new version, "
        f"then {ANEW}"
    )
    found(f"numbers: {len(LOSSES)} losses in {domain}, value and gradient: none has moved")


def test_a_moved_number_is_seen() -> None:
    assert list(moved({"a": [1.0, 2.0]}, {"a": [1.0, 2.003]}))
    assert list(moved({"a": [1.0, 2.0]}, {"a": [1.0]}))
    assert not list(moved({"a": [1.0, 2.0]}, {"a": [1.0001, 2.0]}))
