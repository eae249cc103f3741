"""`bench merge --parquet`: records as one table with a data card."""

import json
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
import yaml
from pyarrow import parquet as arrow

import contrastbench as cb
from contrastbench.benchmarks.records import columns, parquet
from contrastbench.errors import UserError
from made_records import add


def filled(results: Path) -> Path:
    """A folder with records that differ in types, in status and in what they have."""
    add(results, 0, 80.0, params={"temperature": 0.4}, details={"learned": {"scale": [1.0, 2.0]}})
    add(results, 1, 70.0, loss="rince")
    add(results, 1, 0.0, status="diverged", details={"error": "the loss is nan"})
    add(results, 1000, 90.0, loss="adnce", params={"mu": "cosine(0.1, 1.0)"})
    add(results, 0, 85.0, loss="adnce", params={"mu": 0.5}, recipe={"score_at": [3, 5]})
    return results


def test_a_row_for_each_record_with_the_columns_of_the_frame(bench) -> None:
    results = filled(Path("results"))
    code, out, err = bench("merge", "--parquet", "data/records.parquet")
    assert (code, out) == (0, "data/records.parquet\ndata/README.md\n"), err
    found = pandas.read_parquet("data/records.parquet")
    frame = cb.records(results, but=())
    assert list(found.columns) == list(frame.columns)
    for name in ("domain", "loss", "seed", "status", "score", "key", "error", "metrics.accuracy"):
        assert found[name].equals(frame[name]), name
    assert found.folds[found.score == 80.0].map(list).to_list() == [[80.0, 80.0]]


def test_values_of_several_types_are_json(tmp_path: Path) -> None:
    parquet.write_all_records(filled(tmp_path), tmp_path / "r.parquet")
    rows = arrow.read_table(tmp_path / "r.parquet").to_pylist()
    by_score = {row["score"]: row for row in rows}
    assert json.loads(by_score[90.0]["params.mu"]) == "cosine(0.1, 1.0)"
    assert json.loads(by_score[85.0]["params.mu"]) == 0.5
    assert json.loads(by_score[85.0]["recipe.score_at"]) == [3, 5]
    assert json.loads(by_score[80.0]["learned.scale"]) == [1.0, 2.0]
    assert by_score[80.0]["params.mu"] is None
    assert by_score[80.0]["params.temperature"] == 0.4


def test_a_name_that_is_no_parquet_file_is_refused_before_anything_is_merged(bench) -> None:
    code, _, err = bench("merge", "other", "--parquet", "all.csv")
    assert (code, "give a name that ends in .parquet" in err) == (2, True)


def test_merged_folders_are_in_the_file(bench) -> None:
    filled(Path("other"))
    code, out, _ = bench("merge", "other", "--parquet", "all.parquet")
    assert (code, out.splitlines()[-1]) == (0, "5 added, 0 equal, 0 unequal")
    assert arrow.read_table("all.parquet").num_rows == 5


def test_the_card_names_every_column_and_replaces_no_other_page(tmp_path: Path) -> None:
    path, card = parquet.write_all_records(
        filled(tmp_path / "results"), tmp_path / "records.parquet"
    )
    text = card.read_text()
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["configs"] == [{"config_name": "default", "data_files": "records.parquet"}]
    for name in arrow.read_schema(path).names:
        assert f"| `{name}` | " in text
    assert parquet.write_all_records(tmp_path / "results", path) == [path, card], (
        "a card may be replaced"
    )
    card.write_text("# My project\n")
    assert parquet.write_all_records(tmp_path / "results", path) == [path]
    assert card.read_text() == "# My project\n"


def test_the_page_on_records_has_the_meaning_of_each_column() -> None:
    page = (Path(__file__).parents[3] / "docs" / "records.md").read_text()
    for name, meaning in {**columns.FIRST_COLUMNS, **columns.LAST_COLUMNS}.items():
        assert f"| `{name}` | {meaning} |" in page
    for name, meaning in columns.WIDE_COLUMNS.items():
        assert f"| `{name}.*` | {meaning} |" in page


def test_the_hub_s_library_reads_the_folder(tmp_path: Path) -> None:
    """In a process of its own: its threads and its cache are no part of the tests."""
    parquet.write_all_records(filled(tmp_path / "results"), tmp_path / "data" / "records.parquet")
    script = (
        "import datasets\n"
        f"rows = datasets.load_dataset({str(tmp_path / 'data')!r}, split='train')\n"
        "print(rows.num_rows, sorted(rows['score'], key=str))\n"
    )
    environment = {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "5 [70.0, 80.0, 85.0, 90.0, None]\n", done.stderr


def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="holds no records: name a folder that holds runs/"):
        parquet.write_all_records(tmp_path, tmp_path / "r.parquet")
    filled(tmp_path)
    with pytest.raises(UserError, match=r"cannot write .*: name another file"):
        parquet.write_all_records(tmp_path, tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r'pip install "contrastbench\[tabular\]"'):
        parquet.write_all_records(tmp_path, tmp_path / "r.parquet")
