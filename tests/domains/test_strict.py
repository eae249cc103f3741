"""Strict models, and strict YAML: every mistake is one line with file and line number."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

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


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Inner(Strict):
    size: int = 1
    values: list[float] = []


class Outer(Strict):
    title: str
    rows: list[Inner] = []
    columns: dict[str, Inner] = {}
    kinds: dict[str, list[str | list[str]]] = {}


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


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("title: x\nrow: []\n", 2, "unknown key 'row': did you mean 'rows'?"),
        ("title: x\nrows:\n- size: 2\n- sise: 3\n", 4, "unknown key 'sise': did you mean 'size'?"),
        (
            "title: x\ncolumns:\n  A: {}\n  B: {sise: 3}\n",
            4,
            "unknown key 'sise': did you mean 'size'?",
        ),
        ("title: x\ntaly: {a: 7}\n", 2, "unknown key 'taly': known: columns, kinds, rows, title"),
        ("# none\nrows: []\n", 2, "the key 'title' is missing"),
        ("title: x\nrows:\n- size: big\n", 3, "rows.0.size='big': give a whole number"),
        (
            "title: x\nrows:\n- size: 1\n  values:\n  - 1\n  - .nan\n",
            6,
            "rows.0.values.1=nan: input should be a",
        ),
        ("title: 5\n", 1, "title=5: give a text"),
        ("title: x\nrows: {}\n", 2, "rows: give a list"),
        ("title: x\nrows: [1]\n", 2, "rows.0=1: give keys with values"),
        ("title: x\nkinds: {a: [x, 1.5]}\n", 2, "kinds.a.1=1.5: give a text or a list"),
        ("title: x\nkinds: {a: [x, [2]]}\n", 2, "kinds.a.1.0=2: give a text"),
        ("title: x\nkinds:\n  1.5: []\n", 3, "is no text: quote it"),
        ("- 1\n", 1, "the file has no keys at its top: write KEY: VALUE lines"),
        ("", 1, "the file is empty: write KEY: VALUE lines"),
    ],
)
def test_a_value_that_does_not_fit_has_its_line(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as error:
        read_yaml(path).as_model(Outer)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert what in str(error.value)


def test_a_model_is_made(tmp_path: Path) -> None:
    document = read_yaml(written(tmp_path, "title: x\ncolumns: {A: {values: [1, 2.5]}}\n"))
    made = document.as_model(Outer)
    assert made.columns["A"].values == [1.0, 2.5]


def test_anchors_named_again_and_again_are_counted_as_often(tmp_path: Path) -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)]
    assert len(read_yaml(written(tmp_path, "a0: &a0 [x]\n" + "".join(levels[:5]))).value) == 6
    with pytest.raises(UserError, match="7: its aliases make more than 1,000,000 values"):
        read_yaml(written(tmp_path, "a0: &a0 [x]\n" + "".join(levels)))
