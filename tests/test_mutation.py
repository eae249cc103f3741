"""The changes that `tests/tools/mutation.py` makes."""

import ast

from mutation import mutants

SOURCE = """
def least(values: list[float], bound: float = 1.0) -> float:
    print("said")
    return min(v for v in values if v < bound and not flag(v, deep=True))
"""


def test_each_change_is_code_that_says_another_thing() -> None:
    found = dict(mutants(SOURCE))
    assert "4: v < bound -> v <= bound" in found.values()
    assert "4: flag(v, deep=True) -> flag(v)" in found.values()
    assert "3: print('said') -> pass" in found.values()
    assert len(found) == len({ast.dump(ast.parse(text)) for text in [*found, SOURCE]}) - 1
    assert all("list[float]" in text for text in found), "annotations stay"
