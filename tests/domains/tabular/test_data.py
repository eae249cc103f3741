"""Tables from files: what is read, and what is refused."""

import gzip
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import raw_files
from contrastbench.domains.tabular import DATASETS, data
from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.frames import read_higgs, read_table
from contrastbench.losses import UserError


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return f"csv:{path}"


def rows(values: list[str], header: str = "a,colour,y") -> str:
    return "\n".join([header, *values, ""])


MIXED = rows([f"{i},{('red', 'blue', '')[i % 3]},{('no', 'yes')[i % 2]}" for i in range(12)])


def test_embedded_tables_are_scikit_learns() -> None:
    table, digest = load_rows("wine")
    x, y = load_wine(return_X_y=True)
    assert np.array_equal(table.numeric, x)
    assert np.array_equal(table.y, y)
    assert table.names[0] == "alcohol"
    assert (table.categorical.shape, len(digest)) == ((178, 0), 64)


def test_a_csv_has_numbers_words_and_holes(tmp_path: Path) -> None:
    text = MIXED.replace("\n3,", "\n?,").replace("\n4,", "\n,")
    table, _ = load_rows(write(tmp_path / "t.csv", text), "y")
    assert table.names == ("a", "colour")
    assert table.numeric[:, 0].tolist() == pytest.approx(
        [0, 1, 2, np.nan, np.nan, *range(5, 12)], nan_ok=True
    )
    assert table.categorical[:4, 0].tolist() == ["red", "blue", "", "red"]
    assert table.classes == ("no", "yes")
    assert table.y.tolist() == [0, 1] * 6


def test_parquet_is_the_same_table_as_csv(tmp_path: Path) -> None:
    name = write(tmp_path / "t.csv", MIXED)
    pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    assert load_rows(f"parquet:{tmp_path / 't.parquet'}", "y")[1] == load_rows(name, "y")[1]


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    first = load_rows(write(tmp_path / "a.csv", MIXED), "y")[1]
    assert load_rows(write(tmp_path / "b.csv", MIXED), "y")[1] == first
    others = [MIXED.replace(*one) for one in (("11,", "12,"), ("red", "rot"), ("yes", "ja"))]
    found = {load_rows(write(tmp_path / "a.csv", text), "y")[1] for text in others}
    assert len(found | {first}) == 4, "also of a file that changes"


def test_the_file_may_be_in_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root").mkdir()
    write(tmp_path / "root" / "t.csv", MIXED)
    assert len(load_rows("csv:t.csv", "y", tmp_path / "root")[0]) == 12


def test_without_pandas_the_fix_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write(tmp_path / "t.csv", MIXED)
    monkeypatch.delitem(sys.modules, "contrastbench.domains.tabular.own", raising=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        UserError,
        match=r'needs pandas, which is not installed: pip install "contrastbench\[tabular\]"',
    ):
        load_rows(name, "y")


def test_covertype_has_the_repositorys_split(tmp_path: Path) -> None:
    rows = "".join(",".join([str(k)] * 54 + [str(k % 7)]) + "\n" for k in range(100))
    (tmp_path / "covtype.data.gz").write_bytes(gzip.compress(rows.encode() * 152, compresslevel=1))
    small = replace(DATASETS["CoverType"], sizes=(15_200, 55))
    table = read_table(tmp_path / "covtype.data.gz", small)
    assert (len(table), table.starts, table.numeric.shape[1]) == (15_200, (11_340, 15_120), 54)
    with pytest.raises(UserError, match="is damaged"):
        load_rows("CoverType", data_root=tmp_path)


def test_higgs_keeps_a_seeded_draw_and_the_last_rows(tmp_path: Path) -> None:
    small = replace(DATASETS["Higgs-100K"], sizes=(200, 29), parts=(40, 10, 20))
    values = np.arange(200.0)[:, None] + np.zeros(29)
    values[:, 0] = np.arange(200) % 2
    path = tmp_path / "HIGGS.csv"
    pd.DataFrame(values).to_csv(path, header=False, index=False)
    table = read_higgs(path, small)
    kept = table.numeric[:, 0].astype(int)
    drawn = np.random.RandomState(1).choice(180, 50, replace=False)  # i-Mix's tabular.py
    assert kept[:50].tolist() == sorted(drawn)
    assert kept[50:].tolist() == list(range(180, 200))
    assert (table.numeric.shape, table.starts) == ((70, 21), (40, 50))
    for sizes in ((201, 29), (199, 29), (200, 28)):
        with pytest.raises(UserError, match="is damaged"):
            read_higgs(path, replace(small, sizes=sizes))


@pytest.mark.parametrize("name", [name for name, known in DATASETS.items() if known.shipped])
def test_a_shipped_table_is_read_wherever_it_is_asked_for(name: str, tmp_path: Path) -> None:
    known = DATASETS[name]
    (tmp_path / f"{name}.tsv").write_text("another table")
    table, _ = load_rows(name, data_root=tmp_path)
    assert (len(table), len(table.names) + 1) == known.sizes
    assert f" {len(table.classes)} " in known.summary
    assert table.starts == known.starts


def test_a_table_of_the_penn_benchmarks_is_found_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "churn", replace(DATASETS["churn"], sizes=(12, 3)))
    raw_files.RAW["PMLB"].make(tmp_path)
    data.load_declared.cache_clear()
    table, _ = load_rows("churn", data_root=tmp_path)
    assert (table.names, table.y.tolist()) == (("a", "b"), [0, 1] * 6)
    data.load_declared.cache_clear()
