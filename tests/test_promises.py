"""Each promise has a test, and each of these tests is there."""

import ast
from pathlib import Path

import pytest

from promises import PROMISES

PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize("promise", PROMISES)
def test_the_test_of_a_promise_is_there(promise: str) -> None:
    file, _, name = PROMISES[promise].partition("::")
    tree = ast.parse((PROJECT / file).read_text())
    assert name in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}


def test_no_test_holds_two_promises() -> None:
    assert len(set(PROMISES.values())) == len(PROMISES)
