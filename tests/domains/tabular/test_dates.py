"""Dates of users' tables, which become days since 1970."""

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from contrastbench.domains.tabular.data import load_rows

pd = pytest.importorskip("pandas")

DAYS = [date(2019 + k % 3, 1 + k % 12, 1 + (7 * k) % 28) for k in range(30)]
NUMBERS = [float((day - date(1970, 1, 1)).days) for day in DAYS]


def table(texts: list[str], folder: Path) -> str:
    frame = pd.DataFrame({"day": texts, "y": ["no", "yes", "maybe"] * (len(texts) // 3)})
    frame.to_csv(folder / "t.csv", index=False)
    return f"csv:{folder / 't.csv'}"


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%Y-%m-%dT00:00:00", "%Y-%m-%d 00:00:00.000", "%Y-%m-%dT02:00:00+02:00"]
)
def test_dates_are_days_since_1970(form: str, tmp_path: Path) -> None:
    read, _ = load_rows(table([day.strftime(form) for day in DAYS], tmp_path), "y")
    assert (read.names, read.numeric[:, 0].tolist()) == (("day",), NUMBERS)
    assert read.notes == {"columns of dates, read as days since 1970": ["day"]}


def test_a_time_of_day_is_a_part_of_the_day(tmp_path: Path) -> None:
    texts = [f"{day} {k % 24:02}:30:00" for k, day in enumerate(DAYS)]
    read, _ = load_rows(table(texts, tmp_path), "y")
    times = [days + (k % 24 + 0.5) / 24 for k, days in enumerate(NUMBERS)]
    assert read.numeric[:, 0].tolist() == pytest.approx(times)


@pytest.mark.parametrize("hole", ["", "NA", "null", "NaT"])
def test_dates_may_be_missing(hole: str, tmp_path: Path) -> None:
    read, _ = load_rows(table([hole, hole, *map(str, DAYS[2:])], tmp_path), "y")
    assert np.isnan(read.numeric[:, 0]).tolist() == [True, True, *[False] * 28]


@pytest.mark.parametrize("texts", [["1.10", "1.9x", "2.0"], ["1.2.3", "1.2.4", "1.10.0"]])
def test_other_words_stay_words(texts: list[str], tmp_path: Path) -> None:
    assert load_rows(table(texts * 10, tmp_path), "y")[0].categorical.shape == (30, 1)


def test_classes_stay_classes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(30), "y": ["2020-01-01", "2020-01-02"] * 15})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert load_rows(f"csv:{tmp_path / 't.csv'}", "y")[0].classes == ("2020-01-01", "2020-01-02")


@pytest.mark.parametrize("kind", ["dates", "times", "zoned"])
def test_dates_of_a_parquet_file_are_dates(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    zone = UTC if kind == "zoned" else None
    times = [datetime(day.year, day.month, day.day, tzinfo=zone) for day in DAYS]
    frame = pd.DataFrame({"day": DAYS if kind == "dates" else times, "y": ["no", "yes"] * 15})
    frame.to_parquet(tmp_path / "t.parquet")
    read, _ = load_rows(f"parquet:{tmp_path / 't.parquet'}", "y")
    assert read.numeric[:, 0].tolist() == NUMBERS
