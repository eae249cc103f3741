"""Records of one cell that was run in different ways: what is equal in them."""

from typing import Any

import pytest

MEASURED = ("seconds", "seconds_training", "seconds_evaluation", "peak_memory_mib", "sha256")
WAYS = ("environment", "command", "stretches", "equal_to_uninterrupted")


def numbers(found: Any) -> Any:
    """Return a record, or a part, without what another time or number of ranks changes."""
    if isinstance(found, dict):
        return {key: numbers(one) for key, one in found.items() if key not in MEASURED + WAYS}
    return found


def nearly(found: Any) -> Any:
    """Return what equals such a record, up to rounding in float64."""
    if isinstance(found, dict):
        return {key: nearly(one) for key, one in found.items()}
    if isinstance(found, list):
        return [nearly(one) for one in found]
    return pytest.approx(found, rel=1e-10) if isinstance(found, float) else found
