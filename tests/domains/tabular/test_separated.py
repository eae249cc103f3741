"""Files of users with commas, semicolons or tabs, and the decimal signs in them."""

import gzip
from pathlib import Path

import pytest

from contrastbench.domains.tabular.data import load_rows

VALUES = [0.5 + 3 * k for k in range(20)]


def text(separator: str, decimal: str = ".", values: list[float] = VALUES) -> str:
    rows = [
        ["x", "colour", "kind"],
        *(
            [f"{value}".replace(".", decimal), ("red", "blue")[k % 3 // 2], ("no", "yes")[k % 2]]
            for k, value in enumerate(values)
        ),
    ]
    return "".join(separator.join(row) + "\n" for row in rows)


def read(folder: Path, content: str, name: str = "t.csv", encoding: str = "utf-8"):
    (folder / name).write_bytes(content.encode(encoding))
    return load_rows(f"csv:{folder / name}", "kind")[0]


@pytest.mark.parametrize(("name", "encoding"), [("t.csv", "utf-8"), ("t.tsv", "utf-8-sig")])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found(separator: str, name: str, encoding: str, tmp_path: Path) -> None:
    table = read(tmp_path, text(separator), name, encoding)
    assert (table.names, table.numeric[:, 0].tolist()) == (("x", "colour"), VALUES)


def test_the_separator_of_a_packed_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text(";").encode()))
    assert load_rows(f"csv:{tmp_path / 't.csv.gz'}", "kind")[0].names == ("x", "colour")


def test_other_signs_in_fields_are_no_separators(tmp_path: Path) -> None:
    """Semicolons in the last name and in some fields leave the commas the separators."""
    rows = text(",").replace("red", "red;dark;warm").replace("x,", '"x;y;z;w",', 1)
    assert read(tmp_path, rows).names == ("x;y;z;w", "colour")
    quoted = text(";").replace("red", '"red, dark, warm"')
    assert read(tmp_path, quoted).names == ("x", "colour")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read(separator: str, tmp_path: Path) -> None:
    table = read(tmp_path, text(separator, ",").replace("\n6,5", "\n"))
    assert table.names == ("x", "colour")
    assert table.numeric[3:, 0].tolist() == VALUES[3:]


def test_decimal_commas_in_quotes_are_read(tmp_path: Path) -> None:
    rows = [f'"{value}",{("no", "yes")[k % 2]}'.replace(".", ",") for k, value in enumerate(VALUES)]
    table = read(tmp_path, "\n".join(["x,kind", *rows]))
    assert (table.names, table.numeric[:, 0].tolist()) == (("x",), VALUES)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_the_separator_may_stand_above_the_header(name: str, tmp_path: Path) -> None:
    table = read(tmp_path, f"sep=|\n{text('|')}", name)
    assert (table.names, len(table)) == (("x", "colour"), len(VALUES))


def test_points_are_decimal_where_a_clear_one_or_commas_say_so(tmp_path: Path) -> None:
    """Others may stand between thousands, and are refused."""
    values = [1.201, 17.444, 962, *[3.5] * 17]
    assert read(tmp_path, text(";", values=values)).numeric[0, 0] == 1.201
    unclear = text(",", values=[*values[:3], *[31] * 17])
    assert read(tmp_path, unclear).numeric[0, 0] == 1.201


@pytest.mark.parametrize("minus", ["\u2212", "\u2013"])
def test_a_long_minus_is_a_minus(minus: str, tmp_path: Path) -> None:
    table = read(tmp_path, text(",").replace("red", f"{minus}4").replace("blue", "2"))
    assert table.numeric[:2, 1].tolist() == [-4, -4]
    (note,) = table.notes.values()
    assert note.first == "column colour, row 1"


@pytest.mark.parametrize("names", ["0,1,2", "2019,2020,2021"])
def test_a_header_may_count_columns(names: str, tmp_path: Path) -> None:
    rows = [f"{k},{k % 3},{k % 2}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join([names, *rows]))
    assert len(load_rows("csv:t.csv", names.split(",")[2], tmp_path)[0].names) == 2
