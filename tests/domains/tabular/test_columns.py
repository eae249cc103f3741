"""Columns are encoded as scikit-learn does it, and the same after a way through JSON."""

import json

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from contrastbench.domains.tabular.columns import Columns, fit
from contrastbench.domains.tabular.table import TabularSet
from contrastbench.losses import UserError

FIT = np.arange(0, 400, 2)


def table(order: str = "C") -> TabularSet:
    draw = np.random.default_rng(0)
    numeric = np.asarray(draw.lognormal(size=(400, 5)), order=order)
    numeric[draw.random(numeric.shape) < 0.1] = np.nan
    numeric[:, 2] = 3
    words = np.stack(
        [
            draw.choice(["a", "b", ""], 400),
            [f"w{int(k)}" for k in draw.integers(0, 180, 400)],
            ["same"] * 400,
        ],
        axis=1,
    ).astype(object)
    words[1::2, 0] = "z"  # unseen
    names = (*"abcde", "few", "many", "one")
    return TabularSet(numeric, words, names, np.arange(400) % 2, ("0", "1"))


@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_have_the_bits_of_scikit_learn(order: str) -> None:
    """Published records were made by this pipeline, and the last bit moves a training."""
    made = table(order)
    varying = made.numeric[:, [0, 1, 3, 4]]
    pipeline = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    expected = pipeline.fit(varying[FIT]).transform(varying).astype(np.float32)
    assert np.array_equal(fit(made, FIT).encode(made.columns)[:, :4], expected)


def test_words_have_the_inputs_of_scikit_learn() -> None:
    made = table()
    found = fit(made, FIT).encode(made.columns)[:, 4:]
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=100, sparse_output=False
    )
    blocks = [encoder.fit(c[FIT, None]).transform(c[:, None]) for c in made.categorical.T[:2]]
    assert np.array_equal(found, np.concatenate(blocks, axis=1))
    assert found[1::2, :3].sum() == 0, "unseen, and no category is rare"
    assert found[:, 3:].sum(axis=1).tolist() == [1.0] * 400, "unseen ones are rare too"


def test_columns_are_the_same_after_json() -> None:
    made = table()
    columns = fit(made, FIT)
    again = Columns.of_json(json.loads(json.dumps(columns.as_json())))
    assert again == columns
    assert np.array_equal(again.encode(made.columns), columns.encode(made.columns))
    assert again.width == len(again.feature_of) == 4 + 3 + 100
    assert [*again.used] == ["a", "b", "d", "e", "few", "many"]


def test_a_column_of_another_kind_is_read_as_the_training_had_it() -> None:
    made = table()
    made.categorical[:, 0] = np.where(np.arange(400) % 4 < 2, "1", "2")
    columns, expected = fit(made, FIT), made.columns
    words = [repr(x) for x in expected["a"].tolist()]
    words = ["None" if word == "nan" else word for word in words]
    other = expected | {
        "few": expected["few"].astype(float),
        "a": np.array(words, dtype=object),
        "one": np.array([True] * 400),
    }
    assert np.array_equal(columns.encode(other), columns.encode(expected))
    truth = expected | {"a": np.array(["True", "False"] * 200, dtype=object)}
    numbers = expected | {"a": np.array([1.0, 0.0] * 200)}
    assert np.array_equal(columns.encode(truth), columns.encode(numbers))


def test_truth_is_the_same_with_and_without_a_hole() -> None:
    """pandas reads True and False beside a hole as words, and else as numbers."""
    made = table()
    made.categorical[:, 0] = np.array(["True", "False", "", "True"] * 100)
    columns, values = fit(made, np.arange(400)), made.columns
    some = np.arange(400) % 4 < 2
    whole = {name: column[some] for name, column in values.items()}
    numbers = whole | {"few": np.array([1.0, 0.0] * 100)}
    assert np.array_equal(columns.encode(numbers), columns.encode(whole))
    assert columns.unseen(numbers) == {}


def test_what_was_constant_is_not_asked_for() -> None:
    made = table()
    columns, values = fit(made, FIT), made.columns
    few = {name: column for name, column in values.items() if name not in ("c", "one")}
    assert np.array_equal(columns.encode(few), columns.encode(values))
    del few["a"]
    with pytest.raises(UserError, match="it lacks the column a of the training"):
        columns.encode(few)
