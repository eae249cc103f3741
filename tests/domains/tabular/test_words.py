"""Columns of words that were meant as numbers."""

from pathlib import Path

import pytest

pytest.importorskip("pandas")

from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.table import TabularSet

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
        [*NUMBERS[:39], "N/A"],
        [f"2020-01-{k % 28 + 1:02}" for k in range(40)],
    ],
)
def test_names_of_categories_are_words(column: list[str], tmp_path: Path) -> None:
    assert "v" in read(tmp_path, column).names
