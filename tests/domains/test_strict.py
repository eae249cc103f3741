"""Strict models, and strict YAML: every mistake is one line with file and line number."""

from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.domains.strict_yaml import read_yaml
from contrastbench.losses import UserError


def test_a_changed_model_has_the_new_value_and_the_old_one_stays() -> None:
    tune = Tune(trials=3)
    assert tune.but(seeds=[7]) == Tune(trials=3, seeds=[7])
    assert tune == Tune(trials=3)


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"^Tune has no field serach$"):
        Tune().but(serach="points")


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [1.5, x, true, null]", {"a": 1, "b": [1.5, "x", True, None]}),
        ("a: 1e-3\nb: -2E5\nc: 1e-3x", {"a": 1e-3, "b": -2e5, "c": "1e-3x"}),
        ("a: &x {t: 0.2}\nb: {<<: *x, u: 1}", {"a": {"t": 0.2}, "b": {"t": 0.2, "u": 1}}),
        ("'1': '12:30'\nb: 0.5\nc: 0", {"1": "12:30", "b": 0.5, "c": 0}),
        ("", None),
    ],
)
def test_plain_values_are_read(tmp_path: Path, text: str, value: Any) -> None:
    assert read_yaml(written(tmp_path, text)).value == value


def test_anchors_named_again_and_again_are_counted_as_often(tmp_path: Path) -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)]
    assert len(read_yaml(written(tmp_path, "a0: &a0 [x]\n" + "".join(levels[:5]))).value) == 6
    with pytest.raises(UserError, match="7: its aliases make more than 1,000,000 values"):
        read_yaml(written(tmp_path, "a0: &a0 [x]\n" + "".join(levels)))
