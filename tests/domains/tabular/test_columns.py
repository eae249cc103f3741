"""Columns of numbers, words and dates: how they are told apart, and that of scikit-learn."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.preprocessing import Columns, fit
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


@pytest.mark.parametrize(
    ("name", "fact"), [("a", "median"), ("few", "categories"), ("few", "rare")]
)
def test_a_fact_of_a_column_that_an_export_lacks_is_not_guessed(name: str, fact: str) -> None:
    saved = json.loads(json.dumps(fit(table(), FIT).as_json()))
    del saved[name][fact]
    with pytest.raises(ValidationError, match=fact):
        Columns.of_json(saved)


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


NUMBERS = [str(k * 1.5) for k in range(40)]


def read(folder: Path, column: list[str]) -> TabularSet:
    rows = [f'"{word}",{k % 3},{"no" if k % 2 else "yes"}' for k, word in enumerate(column)]
    (folder / "t.csv").write_text("\n".join(["v,w,y", *rows]), encoding="utf-8")
    return load_rows("csv:t.csv", "y", folder)[0]


@pytest.mark.parametrize(
    "column",
    [
        ["0", "1", "2", "3+"] * 10,
        ["2doors", "4doors"] * 20,
        ["1st", "2nd", "3rd", "4th", "5th"] * 8,
        [f"{row}{seat}" for row in range(5) for seat in "ABCD"] * 2,
        ["20-29", "30-39"] * 20,
        [f"{5 * k}-{5 * k + 4}" for k in range(18)] * 2,
        ["1/2", "1/3", "3/4"] * 12,
        [f"A{k % 9}" for k in range(40)],
        [f"Room {k % 25}.1" for k in range(60)],
        ["red", "blue", "7"] * 13 + ["red"],
        [*map(str, range(12)), "none", "other"] * 3,  # 1 of 7 is a word
        [*NUMBERS[:39], "N/A"],
        [f"2020-01-{k % 28 + 1:02}" for k in range(40)],
    ],
)
def test_names_of_categories_are_words(column: list[str], tmp_path: Path) -> None:
    assert "v" in read(tmp_path, column).names


DAYS = [date(2019 + k % 3, 1 + k % 12, 1 + (7 * k) % 28) for k in range(30)]
SINCE_1970 = [float((day - date(1970, 1, 1)).days) for day in DAYS]


def dated(texts: list[str], folder: Path) -> str:
    frame = pd.DataFrame({"day": texts, "y": ["no", "yes", "maybe"] * (len(texts) // 3)})
    frame.to_csv(folder / "t.csv", index=False)
    return f"csv:{folder / 't.csv'}"


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%Y-%m-%dT00:00:00", "%Y-%m-%d 00:00:00.000", "%Y-%m-%dT02:00:00+02:00"]
)
def test_dates_are_days_since_1970(form: str, tmp_path: Path) -> None:
    read, _ = load_rows(dated([day.strftime(form) for day in DAYS], tmp_path), "y")
    assert (read.names, read.numeric[:, 0].tolist()) == (("day",), SINCE_1970)
    assert read.notes == {"columns of dates, read as days since 1970": ["day"]}


def test_a_time_of_day_is_a_part_of_the_day(tmp_path: Path) -> None:
    texts = [f"{day} {k % 24:02}:30:00" for k, day in enumerate(DAYS)]
    read, _ = load_rows(dated(texts, tmp_path), "y")
    times = [days + (k % 24 + 0.5) / 24 for k, days in enumerate(SINCE_1970)]
    assert read.numeric[:, 0].tolist() == pytest.approx(times)


@pytest.mark.parametrize("hole", ["", "NA", "null", "NaT"])
def test_dates_may_be_missing(hole: str, tmp_path: Path) -> None:
    read, _ = load_rows(dated([hole, hole, *map(str, DAYS[2:])], tmp_path), "y")
    assert np.isnan(read.numeric[:, 0]).tolist() == [True, True, *[False] * 28]


@pytest.mark.parametrize("texts", [["1.10", "1.9x", "2.0"], ["1.2.3", "1.2.4", "1.10.0"]])
def test_other_words_stay_words(texts: list[str], tmp_path: Path) -> None:
    assert load_rows(dated(texts * 10, tmp_path), "y")[0].categorical.shape == (30, 1)


def test_classes_stay_classes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(30), "y": ["2020-01-01", "2020-01-02"] * 15})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert load_rows(f"csv:{tmp_path / 't.csv'}", "y")[0].classes == ("2020-01-01", "2020-01-02")


@pytest.mark.parametrize("kind", ["dates", "times", "zoned"])
def test_dates_of_a_parquet_file_are_dates(kind: str, tmp_path: Path) -> None:
    zone = UTC if kind == "zoned" else None
    times = [datetime(day.year, day.month, day.day, tzinfo=zone) for day in DAYS]
    frame = pd.DataFrame({"day": DAYS if kind == "dates" else times, "y": ["no", "yes"] * 15})
    frame.to_parquet(tmp_path / "t.parquet")
    read, _ = load_rows(f"parquet:{tmp_path / 't.parquet'}", "y")
    assert read.numeric[:, 0].tolist() == SINCE_1970
