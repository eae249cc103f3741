"""Columns of words that were meant as numbers."""

from pathlib import Path

import pytest

pytest.importorskip("pandas")

from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.table import TabularSet
from contrastbench.errors import UserError

NUMBERS = [str(k * 1.5) for k in range(40)]


def read(folder: Path, column: list[str]) -> TabularSet:
    rows = [f'"{word}",{k % 3},{"no" if k % 2 else "yes"}' for k, word in enumerate(column)]
    (folder / "t.csv").write_text("\n".join(["v,w,y", *rows]), encoding="utf-8")
    return load_rows("csv:t.csv", "y", folder)[0]


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        ([*NUMBERS[:7], "#REF!", *NUMBERS[8:]], "line 9: column v has '#REF!' among numbers"),
        ([*NUMBERS[:39], "missing"], "line 41: column v has 'missing' among numbers"),
        (["1", "2"] * 15 + ["three"], "line 32: column v has 'three' among numbers"),
        ([*NUMBERS[:25], *["unknown"] * 15], "line 27: column v has 'unknown' among numbers"),
        ([*NUMBERS[:39], "12,5"], "line 41: column v has '12,5' with a decimal comma beside"),
        ([f"{k} kg" for k in range(40)], "line 2: column v has '0 kg' with a unit"),
        ([f"{k}{'kKM'[k % 3]}" for k in range(40)], "column v has '0k' with a unit"),
        ([f"{k} min 30 s" for k in range(40)], "column v has '0 min 30 s' with a unit"),
        ([*NUMBERS[1:40], "(17.25)"], "line 41: column v has '(17.25)' in brackets"),
        ([f"($1,{k + 100}.00)" for k in range(40)], "column v has '($1,100.00)' in brackets"),
        ([f"{k}:{k + 10}:05" for k in range(40)], "column v has '0:10:05' of time"),
        ([f"1 day, {k % 24}:00:00" for k in range(40)], "column v has '1 day, 0:00:00' of time"),
        ([*NUMBERS[:39], "<0.5"], "column v has '<0.5' that is a bound"),
        ([f"1.{k + 100}.000" for k in range(40)], "column v has '1.100.000' with a unit or a sign"),
        ([*NUMBERS[:39], "7-"], "line 41: column v has '7-' with its minus behind"),
        ([f"PT{k}H30M" for k in range(40)], "line 2: column v has 'PT0H30M' of time"),
        ([f"EUR {k}" for k in range(40)], "column v has 'EUR 0' with a unit or a sign"),
        (["1.234,5", "1'234.5", "1 234,5"] * 10, "column v has '1.234,5' with a unit or a sign"),
        ([f"{k}/{k % 3 + 7}" for k in range(40)], "column v has '0/7' of several numbers"),
        ([f"{k}.5 ± 0.1" for k in range(40)], "column v has '0.5 ± 0.1' of several numbers"),
        ([f"{k}-{k + 4}" for k in range(40)], "column v has '0-4' of several numbers"),
        ([f"0x{k:02X}" for k in range(40)], "column v has '0x00' of several numbers"),
        ([f"{k}°30'" for k in range(40)], "of several numbers, or a code"),
        ([f"{k % 12 + 1}/{k % 28 + 1}/{k + 10}" for k in range(40)], "'1/1/10' of several numbers"),
        ([f"{k / 10} out of 5 stars" for k in range(40)], "'0.0 out of 5 stars' of several"),
        ([f"({k}.5, {k}.7)" for k in range(40)], "column v has '(0.5, 0.7)' of several numbers"),
        ([f"{k},12,100" for k in range(40)], "column v has '0,12,100' of several numbers"),
        ([f"'{k}" for k in range(40)], "as Excel keeps texts"),
        (["١٢", "٣", "٤٥"] * 10, "column v has '١٢' in digits other than 0 to 9"),
        (["16.1%", "7 %", "$12", "€1 234,5", "3,5 €"] * 8, "column v has '16.1%' with a unit"),
    ],
)
def test_numbers_as_people_write_them_are_refused(
    column: list[str], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, column)
    assert str(error.value).startswith("csv:t.csv line ")
    assert fault in str(error.value)
    assert read_without(tmp_path).names == ("w",)


def read_without(folder: Path) -> TabularSet:
    """Read the table again without the column."""
    return load_rows("csv:t.csv", "y", folder, drop=("v",))[0]


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
