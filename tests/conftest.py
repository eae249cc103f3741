"""Fixtures shared by all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("CONTRASTBENCH_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture
def shared() -> Callable[..., Path]:
    """A path in the optional full-size material; the test is skipped where it is absent."""

    def find(*parts: str) -> Path:
        path = SHARED.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"optional material is not here: {path}; CONTRASTBENCH_SHARED names its folder")
        return path

    return find
