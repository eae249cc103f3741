"""Files that a user hands in and that are too large, damaged or no files: one line names each.

What damage does to a set of each reader, tests/attack/test_raw_files.py tries.
"""

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from contrastbench.domains import saved
from contrastbench.domains.own import read_unchanged
from contrastbench.domains.tabular import data as tables
from contrastbench.domains.tabular import separated
from contrastbench.losses import UserError

pytest.importorskip("pandas")
pytest.importorskip("PIL")
import pandas as pd

import made_images
from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data import own as data

ROWS = "".join(f"{k},{('red', 'blue')[k % 2]},{('no', 'yes')[k % 2]}\n" for k in range(40))


def table(name: str) -> str:
    read_unchanged.cache_clear()
    return tables.load_rows(name, "y")[1]


def test_a_packed_csv_of_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(("a,y\n" + "1,2\n" * 10_000).encode()))
    monkeypatch.setattr(separated, "UNPACKED", 40_000)
    monkeypatch.setattr(pd, "read_csv", lambda *_, **__: pytest.fail("it is not read"))
    with pytest.raises(UserError, match=r"bomb\.csv\.gz unpacks to more than"):
        table(f"csv:{path}")


def test_a_parquet_file_of_too_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pd.read_csv(io.StringIO("a,colour,y\n" + ROWS)).to_parquet(path)
    monkeypatch.setattr(saved, "MAX_NUMBERS", 100)
    with pytest.raises(UserError, match=r"t\.parquet is too large \(40 rows of 3 columns\)"):
        table(f"parquet:{path}")


def folder(root: Path) -> str:
    read_unchanged.cache_clear()
    return data.load_images(f"folder:{root}", 16, None, made_images.CPU)[1]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_a_pipe_and_a_link_to_nowhere_are_named(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    root = made_images.folder(tmp_path)
    make(root / "train/cat/odd.png")
    made_images.refused(lambda: folder(root), r"train/cat/odd\.png")
    made_images.refused(lambda: decode.folder_reader(root)("train/cat/odd.png"), "cannot")
