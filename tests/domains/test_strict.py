"""Models whose unknown keys are errors, also where a program changes them."""

import pytest

from contrastbench.benchmarks.tables.schema import Tune


def test_a_changed_model_has_the_new_value_and_the_old_one_stays() -> None:
    tune = Tune(trials=3)
    assert tune.but(search="points") == Tune(trials=3, search="points")
    assert tune == Tune(trials=3)


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"^Tune has no field serach$"):
        Tune().but(serach="points")
